"""How a query is decomposed and run: plans, dialects, the executor, episodes, traces, graphs."""
