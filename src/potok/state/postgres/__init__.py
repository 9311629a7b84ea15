"""Cells and books in PostgreSQL."""
