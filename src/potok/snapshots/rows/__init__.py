"""Read the rows of one table: keys, columns, versions and windows."""
