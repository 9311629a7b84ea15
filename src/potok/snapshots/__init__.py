"""Read the tables of a query at a committed batch, from its own process or another, while it runs or not."""
