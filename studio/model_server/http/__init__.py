"""What a request is before it is read: its origin, its packing, content that nobody reads."""
