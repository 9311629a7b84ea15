"""Patterns of event processing: events with envelopes, and patterns over the events of a key."""
