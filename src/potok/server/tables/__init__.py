"""Rows of tables over HTTP."""
