"""The joins of streams and tables."""
