"""Segment files: writing, reading and syncing records."""
