"""Changes and rows of tables as events of Debezium, in columns."""
