"""Practice tasks for agents: one of the pool writes questions, others answer them, and what they agree on is kept."""
