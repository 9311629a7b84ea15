"""Aggregates in windows."""
