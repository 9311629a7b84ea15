"""The batch loop of queries: planning, execution, output, commit. Imports no pyspark."""
