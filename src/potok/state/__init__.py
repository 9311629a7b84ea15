"""State: fenced cells, and the stores that hold them."""
