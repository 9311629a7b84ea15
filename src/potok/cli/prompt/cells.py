"""Values of a result as the text of a cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from potok.server.ksql.json_rows import RowWriter, dump
from potok.sql.types import is_number
from potok.statements.results import ResultColumn, Row

NULL: Final = "NULL"


class CellWriter:
    """The rows of one result as texts. What JSON writes as text stands there as it is, everything else as JSON."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self.headings = [printable(column.name) for column in columns]
        self.is_number = [is_number(column.type) for column in columns]
        self._writer = RowWriter(columns)

    def cells(self, row: Row) -> list[str | None]:
        """None is a NULL, which is not the text "NULL"."""
        return [None if value is None else cell_of(value) for value in self._writer.values(row)]


def cell_of(value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    text = dump(value).decode()
    # Decimals are fragments of JSON, and whatever JSON has no form for is a text by then.
    return printable(json.loads(text)) if text.startswith('"') else printable(text)


def printable(text: str) -> str:
    """On one line, and without what could steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
