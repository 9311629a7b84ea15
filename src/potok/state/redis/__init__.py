"""Cells in Redis."""
