"""SQL: a front end that lowers statements to the nodes of a topology."""
