"""Render the rows of one table as JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa

from potok.server.ksql.json_rows import RowWriter
from potok.snapshots.rows.row_reader import RowReader
from potok.snapshots.snapshot import Snapshot
from potok.sql.analysis.scope import source_fields
from potok.sql.catalog import Source
from potok.sql.types import BIGINT, BOOLEAN, DOUBLE, INT, VARCHAR
from potok.statements.frames import Frame, python_rows
from potok.statements.pull.tables import Access, table_frames
from potok.statements.results import ResultColumn

ALIAS = "T"
"""The alias of the table, if columns have one."""

_ABSENT = object()


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
"""Return whether stored values of a type are shown unchanged; others are converted through a column."""


class RowShape:
    """Data shared by all reads of a table."""

    def __init__(self, source: Source, *, is_local: bool) -> None:
        self.source, self.is_local = source, is_local
        self.fields = [field for field in source_fields(source, ALIAS, positions=False) if not field.hidden]
        self.slots = frozenset(field.slot for field in self.fields)
        self._writer = RowWriter([ResultColumn(field.name, field.type, field.is_key) for field in self.fields])
        self._plain = [(column.name, _PLAIN.get(column.type, _never)) for column in source.values]

    def named(self, frame: Frame) -> list[dict[str, Any]]:
        columns = [frame.columns[field.slot] for field in self.fields]
        rows = self._writer.all_named(python_rows(columns, frame.rows))
        if self.source.stored_table is not None and self.source.stored_table.is_json:
            (column,) = self.source.values
            for row in rows:
                row[column.name] = None if row[column.name] is None else orjson.loads(row[column.name])
        return rows

    def row(self, snapshot: Snapshot, reader: RowReader, wanted: Any, key: bytes) -> dict[str, Any] | None:
        """Return the row of one key of a table without windows; `key` is the canonical form of `wanted`.

        Making columns of a single row takes many times as long as reading it, so a row of plain values is made
        without them.
        """
        value = reader.get(snapshot, key, _ABSENT)
        if value is _ABSENT:
            return None
        if type(wanted) is str and type(value) is dict:  # one key column, of text
            values = self._plain_values(value)
            if values is not None:
                return self._writer.named((wanted, *values))
        frames = table_frames(self.source, ALIAS, reader, snapshot, Access((key,)), self.slots, limited=False)
        return next(iter(self.named(next(frames))), None)

    def _plain_values(self, value: dict[str, Any]) -> list[Any] | None:
        """Return what the columns hold; None where a value must be converted."""
        found = []
        for name, is_plain in self._plain:
            part = value.get(name)
            if part is not None and not is_plain(part):
                return None
            found.append(part)
        return found
