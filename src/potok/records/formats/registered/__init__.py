"""Formats whose records name their schemas, which a registry has."""
