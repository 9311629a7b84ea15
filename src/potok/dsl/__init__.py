"""The Kafka-Streams-style front end: handles over frozen nodes."""
