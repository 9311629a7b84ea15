"""The sink for databases with a JDBC driver."""
