"""State: fenced cells, and the stores that keep them."""
