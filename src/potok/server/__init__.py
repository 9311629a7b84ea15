"""Serve a database over HTTP: the REST API of ksqlDB, and Potok's own."""
