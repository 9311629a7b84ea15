"""The sinks for tables in a lake: Delta Lake and Apache Iceberg."""
