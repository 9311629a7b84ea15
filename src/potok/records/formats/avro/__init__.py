"""The Avro format."""
