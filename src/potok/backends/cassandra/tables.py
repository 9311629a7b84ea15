"""Potok's tables in a keyspace of Cassandra."""

from __future__ import annotations

import uuid

from cassandra import AlreadyExists

from potok.backends.cassandra.connection import CassandraConnection

METADATA = """
CREATE TABLE IF NOT EXISTS potok_metadata (
    space text, name text, value blob, writer blob, unused blob, PRIMARY KEY (space, name)
) WITH {options}
"""

SHARDS = """
CREATE TABLE IF NOT EXISTS potok_shards (
    query text, shard int,
    epoch bigint static, batch_number bigint static, generation bigint static, settled bigint static,
    tbl text, start blob, bucket bigint, split_batch bigint,
    cells bigint, size bigint, floor blob, spare bigint, trimmed_batch bigint,
    PRIMARY KEY ((query, shard), tbl, start)
) WITH {options}
"""

CELLS = """
CREATE TABLE IF NOT EXISTS potok_cells (
    query text, shard int, tbl text, bucket bigint, key blob, cell blob,
    PRIMARY KEY ((query, shard, tbl, bucket), key)
) WITH {options}
"""

TABLES = {"potok_metadata": METADATA, "potok_shards": SHARDS, "potok_cells": CELLS}

# Cells are read and rewritten in every batch, so a read must find them in few files. Removed cells that a node missed
# come back after gc_grace_seconds, unless it was repaired by then: the value is Cassandra's own default, which the
# repairs of a cluster are planned for.
OPTIONS = """
    id = {id} AND gc_grace_seconds = 864000
    AND compaction = {{'class': 'LeveledCompactionStrategy', 'unchecked_tombstone_compaction': 'true'}}
"""


def make_tables(connection: CassandraConnection) -> None:
    """Create the tables that are missing, inside `run`.

    Two nodes that create one table at once would give it two ids, and lose what was written under one of them. So the
    id follows from the name.
    """
    session = connection.session
    wanted = [name for name in TABLES if name not in connection.known]
    if not wanted:
        return
    there = {name for (name,) in session.execute(_FIND, [session.keyspace])}
    for name in wanted:
        if name not in there:
            options = OPTIONS.format(id=uuid.uuid5(_NAMESPACE, f"{session.keyspace}.{name}"))
            try:
                session.execute(TABLES[name].format(options=options))
            except AlreadyExists:
                pass
    connection.known |= TABLES.keys()


_FIND = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"

_NAMESPACE = uuid.UUID("6d6f0a3c-6a0e-5b52-9a3e-7f1c0a5d9b11")
