"""Statements carried out: the catalogue that survives, queries that run, results of those that end."""
