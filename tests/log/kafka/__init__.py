"""Tests of Kafka as a log, on a real server."""
