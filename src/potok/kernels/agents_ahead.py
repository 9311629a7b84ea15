"""Reading the rows of agents' tables ahead, all at once.

Nobody says which rows an agent will ask for. But if the first records asked for that of their own `user_id`, the others
will too, so those rows are read in one go. A wrong guess costs a read, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from potok.kernels.agents_tables import OpenTable

ENOUGH = 32
"""So many records are looked at before anything is guessed."""

KEY = ""
"""Stands for the key of the record, where a field has a name."""

_learnt: dict[tuple[str, str, int], str] = {}
"""By app, table and input, which field tells the key of the row; a worker goes on with what it has learnt."""


class Ahead:
    """Learns from the records of a batch, for each table and input, and reads what the rest will ask for."""

    def __init__(self, app: str, tables: Iterable[OpenTable], inputs: dict[int, AheadInput]) -> None:
        self._app, self._tables, self._inputs = app, list(tables), inputs

    def begin(self) -> None:
        for table in self._tables:
            known = [number for number in self._inputs if (self._app, table.name, number) in _learnt]
            for number in known:
                self._read(table, number)
            if len(known) < len(self._inputs):
                table.asked = []

    def learn(self, places: Sequence[tuple[int, int]]) -> None:
        """Look at what was asked for; `places` tell the input and the row of each record by its number."""
        for table in self._tables:
            asked, table.asked = table.asked or [], None
            for number in self._inputs:
                mine = [
                    (places[record][1], key) for record, key in asked if record >= 0 and places[record][0] == number
                ]
                field = self._inputs[number].field_of(mine)
                if field is not None:
                    _learnt[self._app, table.name, number] = field
                    self._read(table, number)

    def _read(self, table: OpenTable, number: int) -> None:
        found = self._inputs[number]
        keys = found.column(_learnt[self._app, table.name, number])
        table.read_ahead(keys, found.instants)


class AheadInput:
    """The records of one input: their keys, their times, and the values as an agent sees them."""

    def __init__(self, keys: list[Any], instants: list[int], values: list[Any]) -> None:
        self._keys, self.instants, self._values = keys, instants, values

    def column(self, field: str) -> list[Any]:
        return self._keys if field == KEY else [_fields(value).get(field) for value in self._values]

    def field_of(self, asked: list[tuple[int, Any]]) -> str | None:
        """The field that has told the key each time, if there is one."""
        if not asked:
            return None
        first, key = asked[0]
        names = [KEY, *(name for name, item in _fields(self._values[first]).items() if _same(item, key))]
        return next((name for name in names if all(_same(self._item(row, name), key) for row, key in asked)), None)

    def _item(self, row: int, field: str) -> Any:
        return self._keys[row] if field == KEY else _fields(self._values[row]).get(field)


def _same(item: Any, key: Any) -> bool:
    return type(item) is type(key) and bool(item == key)


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})
