"""Operators on tables and their changes."""
