"""Show results: as tables for people, as one JSON document per result for scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.markup import escape

from potok.cli.output import console, counted, note, warn
from potok.cli.prompt.grid import CellWriter, Grid, printable
from potok.server.ksql.json_rows import RowWriter, dump
from potok.sql.types import type_name
from potok.statements.results import Done, Push, ResultColumn, Row, Rows


class Display(Protocol):
    """Show the results of executed statements."""

    def done(self, text: str, result: Done) -> None: ...

    def rows(self, text: str, result: Rows) -> None: ...

    def push(self, text: str, result: Push, *, as_lines: bool) -> PushDisplay:
        """Open a display for rows; `as_lines` prints them as plain lines, as PRINT does."""
        ...


class PushDisplay(Protocol):
    """Shows rows as they arrive."""

    def add(self, rows: Sequence[Row]) -> None: ...

    def end(self, *, interrupted: bool) -> None: ...


class Drawn:
    """Display for people: results on stdout, messages on stderr."""

    def done(self, text: str, result: Done) -> None:
        note(printable(result.message))
        _warn_all(result.warnings)

    def rows(self, text: str, result: Rows) -> None:
        brief = [(heading, value) for heading, value in result.details if _is_brief(value)]
        longest = max((len(heading) for heading, _ in brief), default=0)
        out = console()
        for heading, value in brief:
            out.print(f"{heading.ljust(longest)} : {printable(str(value))}", markup=False)
        _draw(result)
        for heading, value in result.details:
            if not _is_brief(value):
                _draw_detail(heading, value)
        if result.kind == "query" or not result.rows:
            note("no rows" if not result.rows else counted(len(result.rows), "row"))
        _warn_all(result.warnings)

    def push(self, text: str, result: Push, *, as_lines: bool) -> PushDisplay:
        if sys.stdout.isatty():
            note("Ctrl-C stops the query")
        return DrawnLines() if as_lines else DrawnPush(result.columns)


class DrawnPush:
    """A table that grows as rows arrive."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        out = console()
        self._cells = CellWriter(columns)
        width = out.width if out.is_terminal else None
        self._grid = Grid(out, self._cells.headings, self._cells.is_number, width, roomy=True)
        self._rows = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._rows += len(rows)
        self._grid.add([self._cells.cells(row) for row in rows])
        sys.stdout.flush()

    def end(self, *, interrupted: bool) -> None:
        if interrupted and sys.stdout.isatty():
            sys.stdout.write("\r")  # the terminal has printed ^C
        self._grid.end()
        note(f"{counted(self._rows, 'row')}; the query has ended")


class DrawnLines:
    """Plain text, one row per line."""

    def __init__(self) -> None:
        self._lines = 0

    def add(self, rows: Sequence[Row]) -> None:
        self._lines += len(rows)
        for row in rows:
            sys.stdout.write("\t".join(printable(str(value)) for value in row) + "\n")
        sys.stdout.flush()

    def end(self, *, interrupted: bool) -> None:
        note(counted(self._lines, "record"))


class Objects:
    """Display for scripts: each line is a whole result. The first line of a push query lists the columns, every other
    line is a row."""

    def done(self, text: str, result: Done) -> None:
        document: dict[str, Any] = {"statement": text, "message": result.message}
        document |= {"query_id": result.query_id} if result.query_id else {}
        document |= {"command_id": result.command_id, "sequence": result.sequence} if result.command_id else {}
        _write(document | _warnings(result.warnings))

    def rows(self, text: str, result: Rows) -> None:
        _write({"statement": text, "kind": result.kind, **_as_object(result)} | _warnings(result.warnings))

    def push(self, text: str, result: Push, *, as_lines: bool) -> PushDisplay:
        _write({"statement": text, "query_id": result.query_id, "columns": _columns(result.columns)})
        return PushedObjects(result.columns)


class PushedObjects:
    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self._writer = RowWriter(columns)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            _write({"row": self._writer.named(row)})

    def end(self, *, interrupted: bool) -> None:
        pass


def _draw(result: Rows) -> None:
    if not result.rows:
        return
    out, cells = console(), CellWriter(result.columns)
    grid = Grid(out, cells.headings, cells.is_number, out.width if out.is_terminal else None)
    grid.draw([cells.cells(row) for row in result.rows])


def _is_brief(value: Any) -> bool:
    return not isinstance(value, Rows) and "\n" not in str(value)


def _draw_detail(heading: str, value: Any) -> None:
    out = console()
    out.print(f"\n[bold]{escape(printable(heading))}[/]")
    if isinstance(value, Rows):
        for name, text in value.details:
            if _is_brief(text):
                out.print(f"{name} : {printable(str(text))}", markup=False)
        _draw(value)
        for name, inner in value.details:
            if not _is_brief(inner):
                _draw_detail(name, inner)
        return
    for line in str(value).splitlines():
        out.print("  " + printable(line), markup=False)


def _warn_all(warnings: Sequence[str]) -> None:
    for warning in warnings:
        warn(printable(warning))


def _as_object(result: Rows) -> dict[str, Any]:
    document: dict[str, Any] = {"columns": _columns(result.columns)}
    document["rows"] = RowWriter(result.columns).all_named(result.rows)
    if result.details:
        document["details"] = {
            heading: _as_object(value) if isinstance(value, Rows) else value for heading, value in result.details
        }
    return document


def _columns(columns: Sequence[ResultColumn]) -> list[dict[str, Any]]:
    return [{"name": column.name, "type": type_name(column.type), "key": column.is_key} for column in columns]


def _warnings(warnings: Sequence[str]) -> dict[str, Any]:
    return {"warnings": list(warnings)} if warnings else {}


def _write(value: Mapping[str, Any]) -> None:
    sys.stdout.write(dump(value).decode() + "\n")
    sys.stdout.flush()
