"""Topics, offsets and limits of a Kafka cluster."""
