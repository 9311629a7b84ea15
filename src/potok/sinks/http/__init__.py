"""The HTTP sink."""
