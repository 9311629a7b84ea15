"""Columnar evaluation, one file for each family of nodes."""
