"""`potok top`: the queries of a log, live in the terminal, the worst first."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log
from potok.cli.output import console, note, print_json, show_bytes
from potok.cli.queries.panel import show_rate
from potok.cli.queries.running import Interruption

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

app = command_app()

LOOK_S = 0.25
_COLOURS = {"failing": "red", "behind": "yellow", "ok": "green", "off": "dim"}
_WIDE = 100
_REST, _REST_WIDE = 54, 88
"""The columns that the others take, in a narrow and in a wide terminal."""


@app.command()
def top(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Print the queries once; the default if stdout is not a terminal.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="How often to refresh.")] = 1.0,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Watch all queries of a log, the worst first, until Ctrl-C.

    Lag is the number of unread records; oldest is the age of the first of them. With --json, a
    line per query is printed once.
    """
    from potok.server.figures.figures import Figures
    from potok.settings import Settings
    from potok.statements.database import Database

    with (
        Interruption() as interruption,
        opened_log(context, broker) as log,
        Database(log, Settings.load(broker=log.url), runs=False, logs_dead_letters=False) as database,
    ):
        figures = Figures(database)
        try:
            rows = figures.overview()
            if as_json:
                for row in rows:
                    print_json({name: value for name, value in row.items() if name != "history"})
            elif once or not sys.stdout.isatty():
                console().print(screen(rows, console().width))
            else:
                interruption.wait_for_the_batch()
                _watch(figures, interruption, every)
        finally:
            figures.close()
    if not rows and not as_json:
        note("no query has run here yet: potok run shop.py starts one")


def _watch(figures: Any, interruption: Interruption, every: float) -> None:
    from rich.live import Live

    out = console()
    with Live(screen(figures.overview(), out.width), console=out, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + every
        while not interruption.asked.wait(LOOK_S):
            if time.monotonic() >= due:
                due = time.monotonic() + every
                live.update(screen(figures.overview(), out.width), refresh=True)


def screen(rows: Sequence[Mapping[str, Any]], width: int) -> RenderableType:
    """Return the totals and a table of queries that fits a terminal of this width."""
    from rich.console import Group
    from rich.text import Text

    from potok.server.figures.overview import totals

    found = totals(rows)
    state = ", ".join(f"{found[health]} {health}" for health in _COLOURS if found[health]) or "none"
    pace = f"in {show_rate(found['rate_in'])}   out {show_rate(found['rate_out'])}"
    line = f"queries: {state}   {pace}   lag {found['lag']:,}"
    problems = [
        Text(f"{row['query']}: {row['error'].splitlines()[0]}", style="red", overflow="ellipsis", no_wrap=True)
        for row in rows
        if row["error"]
    ]
    return Group(Text(line, overflow="ellipsis", no_wrap=True), _table(rows, width), *problems)


def _table(rows: Sequence[Mapping[str, Any]], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0))
    wide = width >= _WIDE
    room = max(8, width - (_REST_WIDE if wide else _REST))
    table.add_column("query", no_wrap=True, overflow="ellipsis", max_width=room)
    more, most = (("out",), ("watermark", "state size")) if wide else ((), ())
    for name in ("state", "in", *more, "lag", "oldest", *most):
        table.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    for name in ("dead", "restarts"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells: list[RenderableType] = [
            Text(row["query"]),
            Text(row["state"], style=_COLOURS[row["health"]]),
            show_rate(row["rate_in"] or 0.0),
            *([show_rate(row["rate_out"] or 0.0)] if wide else []),
            f"{row['lag'] or 0:,}",
            _age(row["lag_ms"]) if row["lag"] else "-",
            *([_age(row["watermark_lag_ms"]), show_bytes(row["state_bytes"] or 0)] if wide else []),
            f"{row['dead_letters'] or 0:,}",
            f"{row['restarts'] or 0:,}",
        ]
        table.add_row(*cells)
    return table


def _age(ms: int | None) -> str:
    """Render an age briefly: 75000 is "1m15s"."""
    if ms is None:
        return "-"
    seconds = ms // 1000
    if seconds < 60:
        return f"{ms / 1000:.1f}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"
