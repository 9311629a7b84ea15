"""The live page of a query."""
