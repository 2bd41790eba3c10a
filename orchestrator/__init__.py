"""How a query is decomposed and run: plans, dialects, the executor, episodes, traces, graphs."""

import os

# Whatever loads a model comes through here before it imports the Hub's client, which then reports to nobody. Not a
# room further down: a sandbox's interpreter imports that one, and has no business with the Hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")

# torch's threads (GNU OpenMP) spin while they wait for each other, for 300,000 rounds by default. Where other processes
# want the same cores, workers or the studio, a training step then took up to seven times as long; with short spins it
# takes half of that, and idle cores show no difference.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
