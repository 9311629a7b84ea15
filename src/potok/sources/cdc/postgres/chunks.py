"""Read the rows of a PostgreSQL table in chunks, in the order of its key."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pyarrow as pa
from psycopg2 import sql

from potok.clock import now_ms
from potok.sources.cdc.envelopes.shape import Shape
from potok.sources.cdc.landing.chunks import Chunk, ChunkRequest, columns_of
from potok.sources.cdc.postgres.server import Server, answered
from potok.topology.capture import Capture

CHUNK_PREFIX = "potok.chunk"
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class VisibleTransactions:
    """Which transactions a chunk has seen, as `pg_current_snapshot` says."""

    xmax: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> VisibleTransactions:
        """Parse `xmin:xmax:running`.

        >>> VisibleTransactions.of("10:20:12,15").sees(15)
        False
        """
        _, xmax, running = text.split(":")
        return cls(int(xmax), frozenset(int(each) & 0xFFFFFFFF for each in running.split(",") if each))

    def sees(self, transaction: int) -> bool:
        """Whether a transaction that has committed is in the chunk. Its id has 32 bits, which wrap around."""
        ahead = (transaction - self.xmax) & 0xFFFFFFFF
        return ahead >= 0x80000000 and transaction not in self.running


class PostgresChunks:
    """Reads chunks over a connection of its own. Behind each, it writes a message into the stream: whatever the chunk
    has seen comes before that message.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._rows = capture.chunk_rows
        self._opened: Server | None = None

    def read(self, request: ChunkRequest) -> Chunk:
        server = self._server()
        server.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            [(snapshot,)] = server.rows("SELECT pg_current_snapshot()::text")
            shape, keys = server.shape(request.table), server.key_names(request.table)
            until = request.until or self._largest_key(server, shape, keys)
            query = _select(shape, keys, request.after, until, self._rows).as_string(server.connection)
            data = io.BytesIO()
            with answered(self._capture.url), server.connection.cursor() as cursor:
                cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT csv)", data, size=1 << 20)
        finally:
            server.rows("ROLLBACK")
        columns = columns_of(pa.py_buffer(data.getbuffer()), len(shape.columns))
        count = len(columns[0])
        asked = self._rows
        if count:
            self._rows = max(1, min(self._capture.chunk_rows, _MOST_BYTES * count // max(1, data.tell())))
        names = [column.name for column in shape.columns]
        after = tuple(columns[names.index(key)][-1].as_py() for key in keys) if count else None
        last = count < asked or after == until
        return Chunk(request.id, shape, columns, VisibleTransactions.of(snapshot), after, until, last, now_ms())

    def announce(self, request: ChunkRequest) -> None:
        self._server().emit(CHUNK_PREFIX, request.id)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _largest_key(self, server: Server, shape: Shape, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        names = list(map(sql.Identifier, keys))
        texts, listed = (sql.SQL(", ").join(map(sql.SQL(form).format, names)) for form in ("{}::text", "{}"))
        order = sql.SQL(", ").join(map(sql.SQL("{} DESC").format, names))
        # A name in ORDER BY is that of an output column, if there is one: the texts are made outside.
        query = sql.SQL("SELECT {} FROM (SELECT {} FROM {} ORDER BY {} LIMIT 1) AS largest").format(
            texts, listed, _table(shape), order
        )
        found = server.rows(query.as_string(server.connection))
        return tuple(found[0]) if found else None

    def _server(self) -> Server:
        self._opened = self._opened or Server(self._capture)
        return self._opened


def _select(
    shape: Shape, keys: tuple[str, ...], after: tuple[str, ...] | None, until: tuple[str, ...] | None, limit: int
) -> sql.Composable:
    """Return the query for the rows behind one key, up to another."""
    listed = sql.SQL(", ").join(sql.Identifier(column.name) for column in shape.columns)
    order = sql.SQL(", ").join(map(sql.Identifier, keys))
    conditions = [
        sql.SQL("({}) {} ({})").format(order, sql.SQL(sign), sql.SQL(", ").join(map(sql.Literal, key)))
        for sign, key in ((">", after), ("<=", until))
        if key is not None
    ]
    where = sql.SQL("WHERE {} ").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL("")
    return sql.SQL("SELECT {} FROM {} {}ORDER BY {} LIMIT {}").format(
        listed, _table(shape), where, order, sql.Literal(limit)
    )


def _table(shape: Shape) -> sql.Identifier:
    return sql.Identifier(shape.schema, shape.table)
