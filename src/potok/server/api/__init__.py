"""Potok's HTTP API."""
