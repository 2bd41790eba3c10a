"""What the options behind an orchestrator's name do to its turns: each wraps the orchestrator that it changes."""
