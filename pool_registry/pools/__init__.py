"""Whole pools: how two differ, how they are merged, and the files that travel with one."""
