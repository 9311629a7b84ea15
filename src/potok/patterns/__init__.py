"""Patterns over the events of a key."""
