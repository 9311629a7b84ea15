"""Types and traced functions of each step, inferred before anything runs."""
