"""Stand-ins for the parts around what is tested: engines that say what they are told to, clocks that jump."""
