"""Follow-up questions: what a person asks about a run that has ended, rewritten into a question that stands alone."""
