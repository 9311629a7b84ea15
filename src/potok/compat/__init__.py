"""Behaviour of other systems that Potok reproduces."""
