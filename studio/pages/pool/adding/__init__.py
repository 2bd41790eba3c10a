"""Ways to add workers: from the gallery, from where they are, from what was pasted."""
