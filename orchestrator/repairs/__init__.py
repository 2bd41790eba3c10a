"""What code changes in a reader's turns: each repair is a row of `table.py`, with a switch and a mark in the trace."""
