"""Parse SQL text to statements."""
