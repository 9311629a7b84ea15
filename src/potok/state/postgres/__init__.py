"""Cells in PostgreSQL."""
