"""What developers, CI and operators run."""
