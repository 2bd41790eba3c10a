"""How a query is decomposed and run: plans, dialects, the executor, episodes, traces, graphs."""

import os

# Whatever loads a model comes through here before it imports the Hub's client, which then reports to nobody. Not a
# room further down: a sandbox's interpreter imports that one, and has no business with the Hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")

# torch's threads (GNU OpenMP) spin while they wait for each other, for 300,000 rounds by default. Where other processes
# want the same cores, workers or the studio, a training pass then takes a quarter longer than with short spins; on idle
# cores these cost nothing (bench/speed/cpu_training.py).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
