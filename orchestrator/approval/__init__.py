"""Whether a plan runs by itself: estimates, reasons to ask, and decisions."""
