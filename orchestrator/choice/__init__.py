"""Who serves a need: candidates, a score from what is known of each, a draw with its probability."""
