"""Debezium's change events: rows of tables, whole envelopes, and keys."""
