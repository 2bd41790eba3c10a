"""Runs code that a model wrote. The isolation is tested at start; there is no fallback without it."""
