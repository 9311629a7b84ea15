"""Formats of values and keys, one module each; `registry.format_named` returns one by name."""
