"""What each step does to a chunk of records."""
