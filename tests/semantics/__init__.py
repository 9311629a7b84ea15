"""The semantics of each step as data: records with times, and their expected results."""
