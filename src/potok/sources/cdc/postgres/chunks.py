"""Read the rows of a table in chunks, in the order of its key, while its changes are streamed."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from queue import Queue

import numpy as np
import pyarrow as pa
from psycopg2 import sql
from pyarrow import csv

from potok.clock import now_ms
from potok.sources.cdc.postgres.server import Server, answered
from potok.sources.cdc.shape import Shape
from potok.topology.capture import Capture

CHUNK_PREFIX = "potok.chunk"
_MOST_BYTES = 32 << 20
_LEAST_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Visible:
    """Which transactions a chunk has seen, as `pg_current_snapshot` says."""

    xmax: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Visible:
        """Parse `xmin:xmax:running`.

        >>> Visible.of("10:20:12,15").sees(15)
        False
        """
        _, xmax, running = text.split(":")
        return cls(int(xmax), frozenset(int(each) & 0xFFFFFFFF for each in running.split(",") if each))

    def sees(self, xid: int) -> bool:
        """Whether a transaction that has committed is in the chunk. Its id has 32 bits, which wrap around."""
        ahead = (xid - self.xmax) & 0xFFFFFFFF
        return ahead >= 0x80000000 and xid not in self.running


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table as columns of text, and what they have seen."""

    id: str
    shape: Shape
    columns: list[pa.Array]
    visible: Visible
    after: tuple[str, ...] | None
    """The key of the last row; None if there was no row."""
    last: bool
    """Whether there are no rows behind it."""
    read_ms: int

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    id: str
    table: str
    after: tuple[str, ...] | None


class ChunkReader:
    """A thread that reads one chunk at a time. Behind each, it writes a message into the stream: whatever the chunk has
    seen comes before that message.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._requests: Queue[ChunkRequest | None] = Queue()
        self._rows = capture.chunk_rows
        self.chunk: Chunk | None = None
        """The chunk that was requested last, once it was read."""
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"potok-cdc-chunks-{capture.name}", daemon=True)
        self._thread.start()

    def request(self, request: ChunkRequest) -> None:
        self.chunk = None
        self._requests.put(request)

    def close(self) -> None:
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        server: Server | None = None
        try:
            while (request := self._requests.get()) is not None:
                server = server or Server(self._capture)
                self.chunk = self._read(server, request)
                server.emit(CHUNK_PREFIX, request.id)
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for the chunk
            self.failure = error
        finally:
            if server is not None:
                server.close()

    def _read(self, server: Server, request: ChunkRequest) -> Chunk:
        server.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            [(snapshot,)] = server.rows("SELECT pg_current_snapshot()::text")
            shape, keys = server.shape(request.table), server.key_names(request.table)
            query = select(shape, keys, request.after, self._rows).as_string(server.connection)
            data = io.BytesIO()
            with answered(self._capture.url), server.connection.cursor() as cursor:
                cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT csv)", data, size=1 << 20)
        finally:
            server.rows("ROLLBACK")
        columns = columns_of(data.getbuffer(), shape)
        count = len(columns[0])
        asked = self._rows
        if count:
            self._rows = max(1, min(self._capture.chunk_rows, _MOST_BYTES * count // max(1, data.tell())))
        names = [column.name for column in shape.columns]
        after = tuple(columns[names.index(key)][-1].as_py() for key in keys) if count else None
        return Chunk(request.id, shape, columns, Visible.of(snapshot), after, count < asked, now_ms())


def select(shape: Shape, keys: tuple[str, ...], after: tuple[str, ...] | None, limit: int) -> sql.Composable:
    """Return the query for the rows behind a key."""
    listed = sql.SQL(", ").join(sql.Identifier(column.name) for column in shape.columns)
    order = sql.SQL(", ").join(map(sql.Identifier, keys))
    where: sql.Composable = sql.SQL("")
    if after is not None:
        values = sql.SQL(", ").join(map(sql.Literal, after))
        where = sql.SQL("WHERE ({}) > ({}) ").format(order, values)
    return sql.SQL("SELECT {} FROM {} {}ORDER BY {} LIMIT {}").format(
        listed, sql.Identifier(shape.schema, shape.table), where, order, sql.Literal(limit)
    )


def columns_of(data: memoryview, shape: Shape) -> list[pa.Array]:
    """Return the rows that COPY has printed as columns of text. Only NULL is printed without quotes and empty."""
    names = [str(index) for index in range(len(shape.columns))]
    if not len(data):
        return [pa.array([], pa.string()) for _ in names]
    table = csv.read_csv(
        pa.BufferReader(pa.py_buffer(data)),
        # A row must not be longer than a block.
        csv.ReadOptions(column_names=names, block_size=max(_LEAST_BLOCK, len(data) + 1), use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    return [table.column(name).combine_chunks() for name in names]


def without(columns: list[pa.Array], rows: list[int]) -> list[pa.Array]:
    """Return the columns without some rows."""
    if not rows:
        return columns
    keep = np.ones(len(columns[0]), np.bool_)
    keep[rows] = False
    return [column.filter(pa.array(keep)) for column in columns]
