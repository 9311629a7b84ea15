"""Execution of SQL statements: the persistent catalog, running queries, and results."""
