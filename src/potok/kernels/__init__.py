"""The logic of each step on chunks of records: Arrow columns and plain Python, no Spark."""
