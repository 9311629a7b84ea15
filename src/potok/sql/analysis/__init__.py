"""One analysis of a SELECT: what its names mean, the types of its expressions, and what is refused."""
