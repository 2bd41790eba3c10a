"""A walk through a fresh studio as a new user, with clicks, seconds and pictures."""
