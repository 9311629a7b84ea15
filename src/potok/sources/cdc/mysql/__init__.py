"""MariaDB and MySQL: the binary log, and snapshots in chunks."""
