"""Webhooks: signed HTTP requests whose bodies become records."""
