"""Grammars of what a model may write, made from the pool at hand, so that every turn can be read."""
