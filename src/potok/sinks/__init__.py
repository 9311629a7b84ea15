"""Sinks outside the log, and their delivery guarantees."""
