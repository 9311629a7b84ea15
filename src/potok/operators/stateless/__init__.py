"""Operators that process one record at a time."""
