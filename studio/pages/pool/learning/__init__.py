"""What a pool has learnt, and how it learns: lessons, skills, trainings, outcomes."""
