"""The JSON format."""
