"""A database over HTTP: the REST API of ksqlDB, and one of our own."""
