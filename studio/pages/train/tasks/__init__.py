"""The tasks of a pool on the Train page: made, written, posted, read from recorded conversations."""
