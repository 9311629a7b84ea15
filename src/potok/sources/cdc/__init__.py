"""Change data capture: the changes of a database's tables land in topics, in Debezium's envelope, exactly once."""
