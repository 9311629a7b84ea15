"""Text becomes statements."""
