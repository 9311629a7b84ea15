"""`potok rebuild`: rebuild the tables of a query next to the served ones, and swap."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note, print_json
from potok.cli.queries.program import Program, load_topology
from potok.cli.queries.running import Interruption, display_of, run_with_display

if TYPE_CHECKING:
    from potok.runtime.operations.rebuild import RebuildProgress

app = command_app()

LINE_EVERY_S = 2.0


@app.command()
def rebuild(
    context: typer.Context,
    program: Program,
    then_run: Annotated[
        bool, typer.Option("--run", help="After the swap, run the program: it replaces the process that ran before.")
    ] = False,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Rebuild the tables of a changed program from the log, then replace the served ones.

    The query keeps running and its tables are served meanwhile. Once the new tables have caught up, stop it: they
    follow it to its last record and replace the old ones in one transaction. Ctrl-C keeps what was built, and the next
    `potok rebuild` resumes it. With --json, each line is an object whose `event` is progress, promoted or interrupted.
    """
    topology = load_topology(program)
    from potok.runtime.operations.rebuild import rebuild as run_rebuild
    from potok.spark.run import start
    from potok.spark.spark_executor import start_spark

    rendered = _Lines(topology.name, as_json=as_json)
    with opened_log(context, broker) as log, ExitStack() as stack:
        settings = settings_of(context, broker)
        interruption = stack.enter_context(Interruption())
        executor = start_spark(settings)
        interruption.wait_for_the_batch()
        old = run_rebuild(topology, log, settings, lambda _: executor, rendered.report, interruption.asked)
        stack.close()
        rendered.end(old)
        if old is None:
            raise typer.Exit(130)
        if then_run:
            display = display_of(as_json=as_json)
            run_with_display(log, topology.name, display, lambda: start(topology, broker=settings.broker))


class _Lines:
    """Print how far a rebuild is, now and then and whenever its phase changes."""

    def __init__(self, query: str, *, as_json: bool) -> None:
        self._query, self._as_json = query, as_json
        self._phase, self._at, self._read = "", 0.0, 0

    def report(self, found: RebuildProgress) -> None:
        now = time.monotonic()
        if found.phase == self._phase and (found.phase == "waiting" or now - self._at < LINE_EVERY_S):
            return
        rate = (found.read - self._read) / (now - self._at) if found.phase == self._phase else 0.0
        self._phase, self._at, self._read = found.phase, now, found.read
        if self._as_json:
            print_json({"event": "progress", "query": self._query, **asdict(found), "percent": round(found.percent, 1)})
            print(end="", flush=True)
        elif found.phase == "building":
            speed = f", {rate:,.0f} records/s" if rate > 0 else ""
            note(f"building: {found.percent:.0f}% ({found.read:,} of {found.total:,} records{speed})")
        elif found.phase == "waiting":
            note(f'the new tables have caught up with query "{self._query}"; stop it, and they replace the old ones')
        else:
            note("swapping")

    def end(self, old: str | None) -> None:
        if self._as_json:
            event = {"event": "interrupted"} if old is None else {"event": "promoted", "old_cells": old}
            print_json({**event, "query": self._query})
            print(end="", flush=True)
        elif old is None:
            note("interrupted: what was built is kept, and potok rebuild resumes it")
        else:
            note(f'query "{self._query}" has the new tables; the old ones are kept as "{old}"')
