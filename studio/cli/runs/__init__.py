"""Commands that ask, go on with and look into single runs."""
