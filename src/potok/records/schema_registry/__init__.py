"""Schema registries with the API of Confluent's: connection, client, subjects, and the wire format of records."""
