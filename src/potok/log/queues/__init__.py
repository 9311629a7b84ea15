"""Queues over topics: claims, acknowledgements and redelivery."""
