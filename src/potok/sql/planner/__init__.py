"""Plan queries as nodes of a topology."""
