"""The functions that SQL knows by name, one module for each family."""
