"""Python objects to typed columns."""
