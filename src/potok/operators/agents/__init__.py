"""Operators that run the agents of Faust-style programs."""
