"""The analysis of a SELECT: its names, the types of its expressions, and its checks."""
