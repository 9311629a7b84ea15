"""Sinks that send messages: RabbitMQ, MQTT and ZeroMQ."""
