"""Terminal output: results to stdout, messages to stderr."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from potok.errors import PotokError
from potok.monitoring.logs import COMMANDS, writes_json
from potok.sql.errors import SourceLocation, SqlError


def console(*, stderr: bool = False) -> Console:
    """Create a console for each use, because tests replace the streams. Lines are not wrapped in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=True, width=None if stream.isatty() else 10_000)


def print_error(error: PotokError) -> None:
    if writes_json():
        COMMANDS.error(error.message, extra={"hint": error.hint} if error.hint else {})
        return
    lines = [f"[bold red]error:[/] {escape(error.message)}"]
    if isinstance(error, SqlError) and error.location is not None:
        lines += _marked(error, error.location)
    elif error.at is not None:
        lines.append(f"  [dim]at {escape(str(error.at))}[/]")
    if error.hint:
        lines.append(f"  [cyan]hint:[/] {escape(error.hint)}")
    console(stderr=True).print("\n".join(lines))


def _marked(error: SqlError, location: SourceLocation) -> list[str]:
    """Print the position of an error in a statement, in a form that editors can jump to, with the marked line."""
    where = f"line {location.line}, column {location.column}"
    lines = [f"  [dim]at {where if error.at is None else escape(f'{error.at}:{location.column}')}[/]"]
    if error.line_text:
        text, start = error.line_text.expandtabs(1), location.column - 1
        end = min(start + max(1, location.length), max(len(text), start + 1))
        rendered = f"{escape(text[:start])}[red]{escape(text[start:end])}[/]{escape(text[end:])}"
        lines += [f"  {rendered}", f"  {' ' * cell_len(text[:start])}[red]{'^' * max(1, cell_len(text[start:end]))}[/]"]
    return lines


def note(text: str) -> None:
    """Print a message to stderr."""
    if writes_json():
        COMMANDS.info(text)
        return
    console(stderr=True).print(text, markup=False)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    if writes_json():
        COMMANDS.warning(text)
        return
    console(stderr=True).print(f"[bold yellow]warning:[/] {escape(text)}")


def print_json(value: Any) -> None:
    """Print JSON on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers are right-aligned."""
    cells = list(rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(headings):
        is_number = bool(cells) and all(isinstance(row[column], int) for row in cells)
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    console().print(table)


def print_paragraph(heading: str, lines: Iterable[str]) -> None:
    """Print a heading with lines below it; on a terminal, wrap long lines with an indent."""
    out = console()
    out.print(f"[bold]{escape(heading)}[/]")
    for line in lines:
        text = "  " + line
        if out.is_terminal:
            text = textwrap.fill(line, out.width, initial_indent="  ", subsequent_indent="    ")
        out.print(text, markup=False)


def counted(number: int, one: str, several: str = "") -> str:
    """Render a number with its noun: 2 and "record" is "2 records"."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def show_bytes(size: int) -> str:
    """Render a size: 1536 is "1.5 KB"; a negative size is unknown."""
    if size < 0:
        return "-"
    number = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


PRICES = {"puts": 0.005, "lists": 0.005, "gets": 0.0004}
"""US dollars per 1,000 requests to Amazon S3 Standard in its cheapest regions; deletes are free."""


def requests_text(requests: Mapping[str, int]) -> str:
    """Render requests to object storage with an estimate of their price."""
    counts = ", ".join(f"{requests.get(kind, 0):,} {kind}" for kind in ("puts", "gets", "lists", "deletes"))
    sizes = f"{show_bytes(requests.get('bytes_out', 0))} out, {show_bytes(requests.get('bytes_in', 0))} in"
    price = sum(requests.get(kind, 0) * price / 1_000 for kind, price in PRICES.items())
    return f"{counts}, {sizes}, about ${price:,.2f} at the prices of Amazon S3"


def show_bytes_of_record(data: bytes) -> str:
    """Render a key or value on one line: text unchanged, anything else in hexadecimal.

    Control characters are escaped: a record must not control the terminal.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()
    if all(character.isprintable() for character in text):
        return text
    if any(ord(character) < 32 and character not in "\t\n\r" for character in text):
        return "0x" + data.hex()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
