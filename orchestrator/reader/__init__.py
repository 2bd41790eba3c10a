"""Plans for workers that a model has never seen: it says what it needs, the need is bound to a worker, and the
arguments are filled in with that worker's card in sight.
"""
