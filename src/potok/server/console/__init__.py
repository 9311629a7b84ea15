"""The web page of a query."""
