"""Cells in Cassandra."""
