"""Destinations outside the log: files, servers, webhooks and functions."""

from potok.sinks.webhooks.webhooks import WebhookEndpoint

__all__ = ["WebhookEndpoint"]
