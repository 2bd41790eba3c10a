"""Binding: a checkpoint that learnt one pool by heart uses another, whose workers do the same under other names."""
