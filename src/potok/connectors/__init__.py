"""Connections to other systems: one folder for each, and what they have in common."""
