"""Kafka as a log."""
