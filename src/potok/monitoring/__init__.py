"""Metrics, health and logs of running queries and servers: what they are, and the formats they are written in."""
