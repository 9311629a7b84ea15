"""Cells and books in Redis."""
