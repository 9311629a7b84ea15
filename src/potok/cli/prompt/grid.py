"""Rows drawn as a table that fits the terminal, all at once or as they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from potok.cli.prompt.cells import NULL

Cells = Sequence["str | None"]

NARROWEST = 6
"""Columns are folded down to this; if they do not fit even so, each row becomes a list of its columns."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What a table is drawn with: corners and crossings from left to right, top first."""

    top: str
    middle: str
    bottom: str
    across: str
    upright: str


UNICODE = Lines("┌┬┐", "├┼┤", "└┴┘", "─", "│")
ASCII = Lines("+++", "+++", "+++", "-", "|")


class Grid:
    """A table whose columns keep the widths that its first rows ask for.

    Args:
        width: How many characters a line may have; None for as many as it takes.
    """

    def __init__(self, out: Console, headings: Sequence[str], is_number: Sequence[bool], width: int | None) -> None:
        self._out, self._headings, self._is_number, self._width = out, list(headings), is_number, width
        self._lines = UNICODE if out.encoding.lower().startswith("utf") else ASCII
        self._widths: list[int] | None = None
        self._opened = False
        self._rows = 0

    def draw(self, rows: Iterable[Cells]) -> None:
        """A whole table."""
        self.add(list(rows))
        self.end()

    def add(self, rows: Sequence[Cells]) -> None:
        """Some more rows. The first ones decide how wide the columns are."""
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
        """The width of each column; None if there are too many of them for one line."""
        wanted = [
            max(1, cell_len(heading), *(cell_len(_text(row[at])) for row in rows))
            if rows
            else max(1, cell_len(heading))
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
        self._print(Text(ends[0] + ends[1].join(parts) + ends[2], style="dim"))

    def _line(self, cells: Cells, style: str = "") -> None:
        """One row: as many lines as its longest cell is folded into."""
        widths = self._widths or []
        folded = [
            self._folded(_text(cell), width) if self._width is not None else [_text(cell)]
            for cell, width in zip(cells, widths, strict=True)
        ]
        for number in range(max(map(len, folded), default=1) or 1):
            line = Text(self._lines.upright, style="dim")
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                piece = folded[at][number] if number < len(folded[at]) else ""
                blank = " " * max(0, width - cell_len(piece))
                shown = blank + piece if self._is_number[at] and not style else piece + blank
                line.append(" ").append(shown, style=style or ("dim italic" if cell is None else "not dim"))
                line.append(f" {self._lines.upright}")
            self._print(line)

    def _folded(self, text: str, width: int) -> list[str]:
        """Between words if there are any, else anywhere."""
        if cell_len(text) <= width:
            return [text]
        return [line.plain for line in Text(text).wrap(self._out, width, overflow="fold")]

    def _listed(self, row: Cells) -> None:
        """A row as a list of its columns, where a line cannot hold them."""
        longest = max(map(cell_len, self._headings), default=0)
        self._print(
            Text(f"{self._lines.across * 2} row {self._rows} ".ljust(self._width or 40, self._lines.across), "dim")
        )
        for heading, cell in zip(self._headings, row, strict=True):
            line = Text(heading + " " * (longest - cell_len(heading)), style="bold")
            line.append(f" {self._lines.upright} ", style="not bold dim")
            line.append(_text(cell), style="not bold dim italic" if cell is None else "not bold")
            self._print(line)

    def _print(self, line: Text) -> None:
        self._out.print(line, soft_wrap=True)


def _text(cell: str | None) -> str:
    return NULL if cell is None else cell
