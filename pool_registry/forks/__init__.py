"""A copy of what a pool's workers may change, on which a what-if runs."""
