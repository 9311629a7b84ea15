"""The queries of a catalog: their runner, readings, tables and logs."""
