"""Traces and curves to the programs that a team has for them: a table of trackers, one row each."""
