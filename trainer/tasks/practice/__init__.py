"""Practice tasks for any pool: calls that work, plans made of them, queries in words, answers that the workers gave."""
