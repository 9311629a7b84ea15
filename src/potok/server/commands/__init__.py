"""Commands to aggregates over HTTP, and their results."""
