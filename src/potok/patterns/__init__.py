"""Patterns over events: envelopes and versions."""
