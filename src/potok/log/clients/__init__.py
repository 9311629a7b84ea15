"""Producer and consumer for plain Python programs."""
