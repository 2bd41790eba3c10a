"""How an orchestrator learns: tasks, rewards, trajectories, training, evaluation, jobs."""
