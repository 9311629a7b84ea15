"""SQL expressions: checked against the columns in scope, computed over columns."""
