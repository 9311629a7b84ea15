"""Behaviour of other platforms that programs rely on."""
