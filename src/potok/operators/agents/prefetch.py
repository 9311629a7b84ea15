"""Prefetch the rows of agents' tables, all at once.

Which rows an agent will read is not declared. But if the first records read the row of their own `user_id`, the
others will too, so those rows are read at once. A wrong guess costs a read, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import pyarrow as pa

from potok.operators.agents.record_order import RecordLocations
from potok.operators.agents.tables import OpenTable
from potok.operators.core.chunk import Chunk, Column

ENOUGH = 32
"""How many records are observed before anything is guessed."""

KEY = ""
"""The name for the key of the record, among names of fields."""

_learnt: dict[tuple[str, str, int], str] = {}
"""By app, table and input, the field that holds the key of the row; a worker keeps what it has learnt."""


class Prefetch:
    """Learn from the records of a batch, for each table and input, and prefetch what the rest will read."""

    def __init__(self, app: str, tables: Iterable[OpenTable], inputs: dict[int, PrefetchInput]) -> None:
        self._app, self._tables, self._inputs = app, list(tables), inputs

    def start(self) -> None:
        for table in self._tables:
            known = [number for number in self._inputs if (self._app, table.name, number) in _learnt]
            for number in known:
                self._read(table, number)
            if len(known) < len(self._inputs):
                table.asked = []

    def learn(self, locations: RecordLocations) -> None:
        """Evaluate the keys that were read; `locations` give the input and the row of each record by its number."""
        for table in self._tables:
            asked, table.asked = table.asked or [], None
            for number in self._inputs:
                mine = [
                    (locations[record][1], key)
                    for record, key in asked
                    if record >= 0 and locations[record][0] == number
                ]
                field = self._inputs[number].field_of(mine)
                if field is not None:
                    _learnt[self._app, table.name, number] = field
                    self._read(table, number)

    def _read(self, table: OpenTable, number: int) -> None:
        found = self._inputs[number]
        keys = found.column(_learnt[self._app, table.name, number])
        table.read_ahead(keys, found.instants)


class PrefetchInput:
    """The records of one input: their keys, their times, and the values as they were read."""

    def __init__(self, chunk: Chunk, keys: list[Any]) -> None:
        self._keys, self.instants, self._values = keys, chunk.timestamp, chunk.value
        self._columns: dict[str, list[Any]] = {KEY: _texts(keys)}

    def column(self, field: str) -> list[Any]:
        found = self._columns.get(field)
        if found is None:
            found = self._columns[field] = _texts(_column(self._values, field))
        return found

    def field_of(self, asked: list[tuple[int, Any]]) -> str | None:
        """Return the field that held the key each time, if there is one."""
        if not asked:
            return None
        first, key = asked[0]
        names = [KEY, *(name for name, item in self._fields(first).items() if _same(item, key))]
        return next((name for name in names if all(_same(self._item(row, name), key) for row, key in asked)), None)

    def _item(self, row: int, field: str) -> Any:
        return self._keys[row] if field == KEY else self._fields(row).get(field)

    def _fields(self, row: int) -> dict[str, Any]:
        item = self._values[row] if isinstance(self._values, list) else self._values[row].as_py()
        return item if isinstance(item, dict) else {}


def _column(values: Column, field: str) -> list[Any]:
    if isinstance(values, list):
        try:
            return list(map(itemgetter(field), values))
        except (KeyError, TypeError, IndexError):
            return [item.get(field) if isinstance(item, dict) else None for item in values]
    if pa.types.is_struct(values.type) and values.type.get_field_index(field) >= 0:
        found: list[Any] = values.field(field).to_pylist()
        return found
    return [None] * len(values)


def _texts(column: list[Any]) -> list[Any]:
    """Return the values that may be prefetched and are hashable."""
    return column if set(map(type, column)) == {str} else [item if type(item) is str else None for item in column]


def _same(item: Any, key: Any) -> bool:
    return type(item) is type(key) and bool(item == key)
