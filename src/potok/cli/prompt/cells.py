"""Render the values of a result as the text of cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from potok.server.ksql.json_rows import RowWriter, dump
from potok.sql.types import is_number
from potok.statements.results import ResultColumn, Row

NULL: Final = "NULL"


class CellWriter:
    """Render the rows of a result: strings unquoted, everything else as JSON."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self.headings = [printable(column.name) for column in columns]
        self.is_number = [is_number(column.type) for column in columns]
        self._writer = RowWriter(columns)

    def cells(self, row: Row) -> list[str | None]:
        """Return None for NULL, to distinguish it from the text "NULL"."""
        return [None if value is None else cell_of(value) for value in self._writer.values(row)]


def cell_of(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    text = dump(value).decode()
    # Decimals are JSON fragments; values without a JSON form have already been converted to text.
    return printable(json.loads(text)) if text.startswith('"') else printable(text)


def printable(text: str) -> str:
    """Return the text on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
