"""Documents to measure with, whose regions are known."""
