"""Compile an app into a topology."""
