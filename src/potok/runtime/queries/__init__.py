"""Queries and groups of queries: preparation, lock, ledger, batch loop."""
