"""The tables of state in a PostgreSQL database: fences and counts of all queries, and one table of cells per query."""

from __future__ import annotations

from hashlib import blake2b

from psycopg.sql import SQL, Identifier

from potok.backends.postgres.connections import Connection, Connections, connections_to
from potok.backends.postgres.tables import make_tables
from potok.backends.state_url import Where

_FENCES = """
CREATE TABLE IF NOT EXISTS potok.fences (
    query text, shard int, epoch bigint NOT NULL, batch bigint NOT NULL, PRIMARY KEY (query, shard)
)
"""

_COUNTS = """
CREATE TABLE IF NOT EXISTS potok.counts (
    query text, shard int, tbl text, cells bigint NOT NULL, PRIMARY KEY (query, shard, tbl)
)
"""

# Cells are updated often: free space in each page enables heap-only updates, which do not touch the index.
_CELLS = """
CREATE TABLE IF NOT EXISTS {} (
    shard int, tbl text COLLATE "C", key bytea, cell bytea NOT NULL, PRIMARY KEY (shard, tbl, key)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05)
"""

_LONGEST_NAME = 50
"""PostgreSQL truncates names after 63 bytes."""


def cells_of(query: str) -> Identifier:
    """Return the table with the cells of a query."""
    name = (
        query if len(query) <= _LONGEST_NAME else f"{query[:30]}-{blake2b(query.encode(), digest_size=8).hexdigest()}"
    )
    return Identifier("potok", f"cells {name}")


def cells_text(query: str) -> str:
    """Return the same as text, quoted for a statement."""
    return cells_of(query).as_string(None)


def make_state_tables(connections: Connections, query: str) -> None:
    shared = {"potok.fences": SQL(_FENCES), "potok.counts": SQL(_COUNTS)}
    make_tables(connections, {**shared, cells_text(query): SQL(_CELLS).format(cells_of(query))})


def drop_state_tables(where: Where, query: str) -> None:
    """Remove all state of a query, of all shards."""
    connections = connections_to(where)
    make_state_tables(connections, query)

    def work(connection: Connection) -> None:
        with connection.transaction():
            connection.execute(SQL("DROP TABLE IF EXISTS {}").format(cells_of(query)))
            connection.execute("DELETE FROM potok.fences WHERE query = %s", [query])
            connection.execute("DELETE FROM potok.counts WHERE query = %s", [query])

    connections.run(work)
    connections.known.discard(cells_text(query))
