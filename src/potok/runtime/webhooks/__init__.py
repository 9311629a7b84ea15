"""Outgoing webhooks: the log of deliveries and attempts, and the dispatcher that sends them."""
