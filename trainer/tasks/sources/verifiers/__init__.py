"""Task sets of the package verifiers as a source of tasks: their prompts are queries, their rewards grade answers."""
