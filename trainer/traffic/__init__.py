"""Traffic becomes tasks: runs that somebody judged are candidates, which a person accepts, edits or strikes."""
