"""Lessons for orchestrators: generated tasks with exact answers and reference plans, and the workers that some need."""
