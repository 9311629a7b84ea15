"""Connections to the servers that can hold state and metadata."""
