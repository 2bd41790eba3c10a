"""The app of a published Space: its two files are copied into it and run there."""
