"""Queries become nodes of a topology."""
