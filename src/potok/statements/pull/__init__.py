"""Pull queries."""
