"""Notices by webhook: a job has ended, a gate has refused, a cap is reached, a candidate may be promoted.

settings.py   where they go and which ones, a file of the data folder
send.py       one POST with a few tries; whatever goes wrong is a line of the log and never ends a job
"""
