"""Patterns of event processing, built from the operators."""
