"""Many topologies in one of Spark's streaming queries, each with a ledger, tables and dead letters of its own."""
