"""How unlike everything that a checkpoint learnt a query and a pool are, said before its first turn."""
