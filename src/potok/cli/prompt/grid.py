"""Draw rows as a table that fits the terminal, all together or as they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from potok.server.ksql.json_rows import RowWriter, dump
from potok.sql.types import is_number
from potok.statements.results import ResultColumn, Row

Cells = Sequence["str | None"]

ROOM = {True: 10, False: 18}
"""Initial widths of numeric and other columns if more rows may follow."""

NULL_STYLE = "dim italic"
NARROWEST = 6
"""Minimum width of a wrapped column. If the columns still do not fit, each row is printed as a list of columns."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Characters that draw a table: corners and crossings from left to right, top first."""

    top: str
    middle: str
    bottom: str
    across: str
    upright: str


UNICODE = Lines("┌┬┐", "├┼┤", "└┴┘", "─", "│")
ASCII = Lines("+++", "+++", "+++", "-", "|")


class Grid:
    """A table whose column widths are determined by its first rows.

    Args:
        width: Maximum number of characters per line; None for no limit.
        roomy: Leave room for rows that are longer than the first ones.
    """

    def __init__(
        self,
        out: Console,
        headings: Sequence[str],
        is_number: Sequence[bool],
        width: int | None,
        *,
        roomy: bool = False,
    ) -> None:
        self._out, self._headings, self._is_number, self._width = out, list(headings), is_number, width
        self._least = [(ROOM[number] if roomy and width is not None else 1) for number in is_number]
        self._lines = UNICODE if out.encoding.lower().startswith("utf") else ASCII
        self._widths: list[int] | None = None
        self._opened = False
        self._rows = 0
        self._paint: dict[tuple[str, str], str] = {}

    def draw(self, rows: Iterable[Cells]) -> None:
        """A whole table."""
        self.add(list(rows))
        self.end()

    def add(self, rows: Sequence[Cells]) -> None:
        """Return the lines of more rows. The first rows determine the column widths."""
        if not self._opened:
            self._opened = True
            self._widths = self._fit(rows)
            if self._widths is not None:
                self._rule(self._lines.top)
                self._line(self._headings, style="bold")
                self._rule(self._lines.middle)
        for row in rows:
            self._rows += 1
            if self._widths is None:
                self._listed(row)
            else:
                self._line(row)

    def end(self) -> None:
        if self._opened and self._widths is not None:
            self._rule(self._lines.bottom)

    def _fit(self, rows: Sequence[Cells]) -> list[int] | None:
        """Return the width of each column; None if they do not fit on one line."""
        wanted = [
            max(self._least[at], cell_len(heading), *(cell_len(_text(row[at])) for row in rows), 1)
            for at, heading in enumerate(self._headings)
        ]
        room = None if self._width is None else self._width - 3 * len(wanted) - 1
        if room is None or sum(wanted) <= room:
            return wanted
        most = max(wanted)
        while most >= NARROWEST and sum(min(width, most) for width in wanted) > room:
            most -= 1
        if most < NARROWEST:
            return None
        fitted = [min(width, most) for width in wanted]
        for at, width in enumerate(wanted):
            if width > most and sum(fitted) < room:
                fitted[at] += 1
        return fitted

    def _rule(self, ends: str) -> None:
        parts = [self._lines.across * (width + 2) for width in self._widths or ()]
        self._write(self._painted(ends[0] + ends[1].join(parts) + ends[2], "dim"))

    def _line(self, cells: Cells, style: str = "") -> None:
        """Return the lines of one row, as many as its longest cell needs."""
        widths = self._widths or []
        folded = [self._folded(_text(cell), width) for cell, width in zip(cells, widths, strict=True)]
        upright = self._painted(self._lines.upright, "dim")
        for number in range(max(map(len, folded), default=1)):
            parts = []
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                piece = folded[at][number] if number < len(folded[at]) else ""
                blank = " " * (width - cell_len(piece))
                rendered = self._painted(piece, style or (NULL_STYLE if cell is None else ""))
                parts.append(blank + rendered if self._is_number[at] and not style else rendered + blank)
            self._write(f"{upright} {f' {upright} '.join(parts)} {upright}")

    def _folded(self, text: str, width: int) -> list[str]:
        """Wrap between words if possible, otherwise anywhere."""
        if self._width is None or cell_len(text) <= width:
            return [text]
        return [line.plain for line in Text(text).wrap(self._out, width, overflow="fold")]

    def _listed(self, row: Cells) -> None:
        """Return a row as a list of its columns, for rows that do not fit on a line."""
        longest = max(map(cell_len, self._headings), default=0)
        across, upright = self._lines.across, self._painted(self._lines.upright, "dim")
        self._write(self._painted(f"{across * 2} row {self._rows} ".ljust(self._width or 40, across), "dim"))
        for heading, cell in zip(self._headings, row, strict=True):
            name = self._painted(heading, "bold") + " " * (longest - cell_len(heading))
            self._write(f"{name} {upright} {self._painted(_text(cell), NULL_STYLE if cell is None else '')}")

    def _painted(self, text: str, style: str) -> str:
        """Wrap the text in the codes of a style if the console has colours. Printing each line through the console
        takes ten times as long."""
        if not style or not text or self._out.color_system is None:
            return text
        known = self._paint.get((text, style))
        if known is None:
            with self._out.capture() as capture:
                self._out.print(Text(text, style=style), end="", soft_wrap=True)
            known = self._paint[text, style] = capture.get()
        return known

    def _write(self, line: str) -> None:
        self._out.file.write(line + "\n")


def _text(cell: str | None) -> str:
    return NULL if cell is None else cell


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
