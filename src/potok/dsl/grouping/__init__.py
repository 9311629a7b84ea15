"""Streams and tables grouped by key, and what can be made of them."""
