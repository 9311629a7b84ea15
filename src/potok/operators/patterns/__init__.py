"""Patterns over the records of a key."""
