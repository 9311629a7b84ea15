"""Split the text of statements into tokens."""
