"""Documents as pages: open, render, normalise, measure ink, cut regions. All pixel work runs in child processes."""
