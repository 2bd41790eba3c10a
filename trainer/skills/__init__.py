"""Skills (after Voyager, arXiv 2305.16291): plans that solved several similar tasks become workers with parameters."""
