"""What several kinds of worker share."""
