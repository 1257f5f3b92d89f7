"""Checkpoint files: readers, what a family expects of them, and the account of every tensor."""
