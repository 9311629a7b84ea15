"""Data structures that operators keep in state cells."""
