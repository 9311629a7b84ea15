"""Read the rows of a MariaDB or MySQL table in chunks, in the order of its key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pymysql

from potok.clock import now_ms
from potok.sources.cdc.envelopes.shape import Column, Shape
from potok.sources.cdc.errors import CaptureStopped
from potok.sources.cdc.landing.chunks import Chunk, ChunkRequest, columns_of
from potok.sources.cdc.mysql.positions import VisibleLog, number_of
from potok.sources.cdc.mysql.server import DatabaseUnreachable, Server, answered
from potok.sources.cdc.mysql.types import BYTES
from potok.topology.capture import Capture

_MOST_BYTES = 6 << 20
"""The server returns a chunk as one text, which has to fit into its `max_allowed_packet`."""

_QUOTE = "\x01"
"""What is around texts, and hardly ever in them: the server takes long to double the many in a long text."""

_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit")
_TIMES = ("date", "datetime", "timestamp", "time")
_PLAIN = (*_NUMBERS, "float", "double", *_TIMES)
"""Types whose texts need no quotes."""


class MysqlChunks:
    """Reads chunks over a connection of its own. The server writes each as one text of CSV: a driver in Python would
    take most of its time for single values.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._rows = capture.chunk_rows
        self._most_bytes = _MOST_BYTES
        self._opened: Server | None = None

    def read(self, request: ChunkRequest) -> Chunk:
        server = self._opened = self._opened or self._open()
        while True:
            before = "" if server.is_mariadb else self._executed(server)
            server.start_snapshot()
            try:
                visible = self._visible(server, before)
                chunk = self._chunk(server, request, visible)
            finally:
                server.rows("ROLLBACK")
            if chunk is not None:
                return chunk
            self._rows = max(1, self._rows // 4)

    def announce(self, request: ChunkRequest) -> None:
        pass

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _open(self) -> Server:
        server = Server(self._capture)
        [(most,)] = server.rows("SELECT @@max_allowed_packet")
        self._most_bytes = min(_MOST_BYTES, int(most) // 2)
        return server

    def _executed(self, server: Server) -> str:
        [(found,)] = server.rows("SELECT @@global.gtid_executed")
        return str(found).replace("\n", "")

    def _visible(self, server: Server, before: str) -> VisibleLog:
        if server.is_mariadb:
            file, pos = server.snapshot_position()
            return VisibleLog((number_of(file), pos))
        position = server.log_position()
        return VisibleLog((number_of(position.file), position.pos), before)

    def _chunk(self, server: Server, request: ChunkRequest, visible: VisibleLog) -> Chunk | None:
        """Return a chunk, or None if it is too large for one answer of the server."""
        database, name = request.table.split(".", 1)
        table = f"{_quoted(database)}.{_quoted(name)}"
        # Locks the definition of the table until the end of the transaction, so that its columns are those of the rows.
        server.rows(f"SELECT 1 FROM {table} LIMIT 1")
        shape, keys = server.shape(request.table), server.key_names(request.table)
        types = {column.name: column for column in shape.columns}
        ordered = [types[key] for key in keys]
        end = request.until or self._largest_key(server, table, ordered)
        until = self._last_key(server, table, ordered, request.after, end)
        where = _between(ordered, request.after, until or end)
        zero_filled = server.zero_filled(request.table)
        line = ", ',', ".join(_expression(column, zero_filled) for column in shape.columns)
        query = (
            f"SELECT COUNT(*), COALESCE(SUM(LENGTH(line)), 0), COALESCE(MIN(line IS NOT NULL), 1), "
            f"GROUP_CONCAT(line SEPARATOR '\\n') FROM (SELECT CONCAT({line}) AS line FROM {table}{where}) AS chunk"
        )
        [(count, length, whole, text)] = server.rows(query)
        data = (text or "").encode() if isinstance(text, str | None) else bytes(text)
        if not whole or len(data) != int(length) + max(0, count - 1):
            if self._rows == 1:
                return self._single(server, request, shape, table, where, visible, until, end)
            return None
        columns = columns_of(pa.py_buffer(data), len(shape.columns), _QUOTE)
        if count:
            fitting = self._most_bytes * count // max(1, len(data))
            self._rows = max(1, min(self._capture.chunk_rows, fitting, 2 * self._rows))
        after = until if until is not None else request.after
        return Chunk(request.id, shape, columns, visible, after, end, until is None, now_ms())

    def _largest_key(self, server: Server, table: str, keys: Sequence[Column]) -> tuple[str, ...] | None:
        order = ", ".join(f"{_comparable(key)} DESC" for key in keys)
        return self._key(server, keys, f"FROM {table} ORDER BY {order} LIMIT 1")

    def _last_key(
        self,
        server: Server,
        table: str,
        keys: Sequence[Column],
        after: tuple[str, ...] | None,
        end: tuple[str, ...] | None,
    ) -> tuple[str, ...] | None:
        """Return the key of the last row of the chunk; None if all rows fit."""
        order = ", ".join(_comparable(key) for key in keys)
        where = _between(keys, after, end)
        return self._key(server, keys, f"FROM {table}{where} ORDER BY {order} LIMIT {self._rows - 1}, 1")

    def _key(self, server: Server, keys: Sequence[Column], rest: str) -> tuple[str, ...] | None:
        found = server.rows(f"SELECT {', '.join(_key_text(key) for key in keys)} {rest}")
        return tuple(str(value) for value in found[0]) if found else None

    def _single(
        self,
        server: Server,
        request: ChunkRequest,
        shape: Shape,
        table: str,
        where: str,
        visible: VisibleLog,
        until: tuple[str, ...] | None,
        end: tuple[str, ...] | None,
    ) -> Chunk:
        """Read a row that is too large for one text, as the values that it has."""
        values = [_value(column, set()) for column in shape.columns]
        # The driver would make objects of times, which are written in another way.
        listed = [
            f"CAST({value} AS CHAR)" if _base(column) in _TIMES else value
            for column, value in zip(shape.columns, values, strict=True)
        ]
        # What a function returns is NULL if it is larger than `max_allowed_packet`.
        lost = " OR ".join(
            f"({value} IS NULL) <> ({_quoted(column.name)} IS NULL)"
            for column, value in zip(shape.columns, values, strict=True)
        )
        try:
            with answered(self._capture.url), server.connection.cursor() as cursor:
                cursor.execute(f"SELECT {', '.join(listed)}, {lost} FROM {table}{where}")
                found = cursor.fetchall()
        except pymysql.err.MySQLError as error:
            raise DatabaseUnreachable(self._capture.url, str(error)) from error
        if any(row[-1] for row in found):
            raise CaptureStopped(
                f'a row of table "{request.table}" is larger than the server can send',
                hint="increase max_allowed_packet",
            )
        columns = [
            pa.array([None if row[index] is None else str(row[index]) for row in found], pa.string())
            for index in range(len(shape.columns))
        ]
        after = until if until is not None else request.after
        return Chunk(request.id, shape, columns, visible, after, end, until is None, now_ms())


def _expression(column: Column, zero_filled: set[str]) -> str:
    """Return the SQL for a value in CSV: empty for NULL, and in quotes unless nothing in it needs them."""
    value = _value(column, zero_filled)
    name = _base(column)
    if name in _PLAIN:
        return f"IFNULL({value}, '')"
    text = value if name in (*BYTES, "geometry") else f"REPLACE({value}, '{_QUOTE}', '{_QUOTE * 2}')"
    # Not IFNULL: a text that is too large for the server is NULL as well, and then so has to be the line.
    return f"IF({_quoted(column.name)} IS NULL, '', CONCAT('{_QUOTE}', {text}, '{_QUOTE}'))"


def _value(column: Column, zero_filled: set[str]) -> str:
    """Return the SQL for the text of a value, as the binary log is read."""
    name, type_ = _quoted(column.name), _base(column)
    if type_ == "float":
        return f"{name} * 1e0"
    if type_ in ("year", "bit") or column.name in zero_filled:
        return f"{name} + 0"
    if type_ in BYTES or type_ == "geometry":
        return f"REPLACE(TO_BASE64({name}), '\\n', '')"
    if type_ in _PLAIN:
        return name
    return f"CONVERT({name} USING utf8mb4)"


def _comparable(column: Column) -> str:
    """Return the SQL by which keys are ordered: labels are in the order of their numbers."""
    name = _quoted(column.name)
    return f"{name} + 0" if _is_labelled(column) else name


def _key_text(column: Column) -> str:
    """Return the SQL for the text by which a key is found again."""
    return f"CAST({_comparable(column) if _is_labelled(column) else _value(column, set())} AS CHAR)"


def _literal(column: Column, text: str) -> str:
    type_ = _base(column)
    if type_ in _NUMBERS or _is_labelled(column):
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"FROM_BASE64('{escaped}')" if type_ in BYTES else f"'{escaped}'"


def _is_labelled(column: Column) -> bool:
    return _base(column) in ("enum", "set")


def _base(column: Column) -> str:
    """Return the name of a type, without anything in brackets."""
    return column.type.partition("(")[0].partition(" ")[0]


def _between(keys: Sequence[Column], after: tuple[str, ...] | None, until: tuple[str, ...] | None) -> str:
    """Return the condition for the rows behind one key, up to another; indexes serve no comparison of whole rows."""
    parts = []
    if after is not None:
        parts.append(_beyond(keys, after, ">"))
    if until is not None:
        parts.append(_beyond(keys, until, "<", or_equal=True))
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _beyond(keys: Sequence[Column], values: tuple[str, ...], sign: str, *, or_equal: bool = False) -> str:
    column, literal = _comparable(keys[0]), _literal(keys[0], values[0])
    if len(keys) == 1:
        return f"({column} {sign}{'=' if or_equal else ''} {literal})"
    rest = _beyond(keys[1:], values[1:], sign, or_equal=or_equal)
    return f"({column} {sign}= {literal} AND ({column} {sign} {literal} OR {rest}))"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
