"""What people paste, as workers: text in, workers and what has to be asked first out. `table.py` has a row for each
kind of text; a new one is a row there and nothing else."""
