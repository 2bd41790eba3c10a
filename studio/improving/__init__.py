"""Improvements that nobody has to start: at the times that a person chose, and by a click.

schedule.py   when each pool is improved, a file for each
start.py      what serves a pool, and an improvement in a process of its own
"""
