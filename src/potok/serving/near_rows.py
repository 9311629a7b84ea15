"""Rows by key of tables whose cells are on this machine: read in the thread that answers, out of cuts that are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa

from potok.errors import PotokError
from potok.records.keys import encode_key
from potok.serving.json_rows import dump
from potok.serving.table_reads import Shape, TableReads, key_of, source_named
from potok.sql.catalog import Source
from potok.sql.types import BIGINT, BOOLEAN, DOUBLE, INT, VARCHAR
from potok.statements.database import Database
from potok.views.cut import Cut
from potok.views.held_cut import HeldCut
from potok.views.layout import load_layouts
from potok.views.one_value import one_value
from potok.views.row_reader import RowReader


class Far(Exception):
    """What must be read the longer way, which also knows what is wrong with a request."""


def _never(_value: Any) -> bool:
    return False


def _whole(bits: int, value: Any) -> bool:
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


_PLAIN: Final[dict[pa.DataType, Callable[[Any], bool]]] = {
    BOOLEAN: lambda value: type(value) is bool,
    INT: partial(_whole, 32),
    BIGINT: partial(_whole, 64),
    DOUBLE: lambda value: type(value) is float,
    VARCHAR: lambda value: type(value) is str,
}
"""Whether a value of a type is shown as it is kept; any other goes through columns, which know what becomes of it."""


class _Table:
    """How the rows of a table are read, for as long as it has these layouts."""

    def __init__(self, shape: Shape, layouts: bytes) -> None:
        self.shape, self.layouts = shape, layouts
        source = shape.source
        layout = load_layouts(layouts).get(source.name)
        if layout is None:
            raise Far
        self._reader, self._value = RowReader(layout), one_value(layout)
        self._plain = [(column.name, _PLAIN.get(column.type, _never)) for column in source.values]

    def row(self, cut: Cut, text: str) -> dict[str, Any] | None:
        wanted, layout = key_of(self.shape.source, text), self._reader.layout
        key = encode_key(wanted, self._reader.key_type)
        data = None if key is None else cut.get(layout.table, layout.shard_of(key, cut.shards), key)
        if key is None or data is None:
            return None
        if self._value is not None and type(wanted) is str:  # one key column, of text
            values = self._plain_values(self._value(data))
            if values is not None:
                return self.shape.writer.named((wanted, *values))
        return next(iter(self.shape.of_key(cut, self._reader, key)), None)

    def _plain_values(self, value: Any) -> list[Any] | None:
        """What the columns hold, if it can be shown as it is."""
        if value is None:
            return None
        found = []
        for name, is_plain in self._plain:
            part = value.get(name)
            if part is not None and not is_plain(part):
                return None
            found.append(part)
        return found


class NearRows:
    """Finds rows by key, all in one thread."""

    def __init__(self, database: Database, reads: TableReads) -> None:
        self._database, self._reads = database, reads
        self._held: dict[str, HeldCut] = {}
        self._tables: dict[str, _Table] = {}

    def find(self, name: str, text: str) -> tuple[Source, bytes | None]:
        """A table, and the row of a key as JSON if there is one; raises `Far`."""
        try:
            source = source_named(self._database.catalog, name, is_table=True)
            shape = self._reads.shape(source)
            if not shape.is_near or not source.table_of or source.window is not None or source.kept is not None:
                raise Far
            held = self._held.get(source.table_of)
            if held is None:
                held = self._held[source.table_of] = HeldCut(self._database.broker, source.table_of)
            row = held.read(lambda cut, layouts: self._table(shape, layouts).row(cut, text))
            return source, None if row is None else dump(row)
        except (PotokError, orjson.JSONEncodeError) as error:
            raise Far from error

    def release(self) -> None:
        """Let go of all cuts; the next read opens others."""
        for held in self._held.values():
            held.release()

    def _table(self, shape: Shape, layouts: bytes) -> _Table:
        table = self._tables.get(shape.source.name)
        if table is None or table.shape is not shape or table.layouts != layouts:
            table = self._tables[shape.source.name] = _Table(shape, layouts)
        return table
