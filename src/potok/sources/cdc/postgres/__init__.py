"""PostgreSQL: logical replication through pgoutput, and snapshots in chunks."""
