"""Conversion of Python objects to typed columns."""
