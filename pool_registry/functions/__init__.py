"""A person's own Python functions, each in a process of its own: never in the studio's."""
