"""`potok run`: run a program's topology until it is stopped, and show how it is doing."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from potok.cli.options import Broker, Json, command_app, opened_log, settings_of
from potok.cli.output import note
from potok.cli.program import Program, load_topology

if TYPE_CHECKING:
    from potok.cli.panel import Display
    from potok.console.query_feed import QueryFeed
    from potok.engine.query import Query
    from potok.log.broker import Broker as Log
    from potok.views.progress import Progress

app = command_app()

LOOK_SECONDS = 0.25


@app.command()
def run(
    context: typer.Context,
    program: Program,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop when all records that are there now have been processed.")
    ] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, help="How many ways the state of a new query is cut (POTOK_SHARDS).")
    ] = None,
    broker: Broker = None,
    as_json: Json = False,
) -> None:
    """Run a topology until Ctrl-C or SIGTERM, which stop it at the end of a batch.

    A query goes on where it stopped. What the program changes since then is shown first; `potok diff` shows it without
    running anything. With --json, each line is an object whose `event` is changed, progress or ended.
    """
    topology = load_topology(program)
    from potok.console.query_feed import QueryFeed
    from potok.engine.prepare import changes_of
    from potok.engine.run import start

    display = _display(as_json=as_json)
    with opened_log(context, broker) as log, Interruption() as interruption:
        display.changes(topology.name, changes_of(topology, log))
        _mention_shards(log, topology.name, shards)
        before = read_standing(log, topology.name)
        url = settings_of(context, broker).broker
        with display.starting():
            query = start(topology, broker=url, until_end=until_end, shards=shards)
        interruption.wait_for_the_batch()
        feed = QueryFeed(log, topology.name)
        try:
            with display.running():
                _watch(query, feed, display, interruption)
        finally:
            display.end(summary(before, read_standing(log, topology.name)))


class Interruption:
    """Ctrl-C and SIGTERM: they end the program at once while it starts; then the first one asks the query to stop, and
    the second one does not wait for it."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._waits = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def wait_for_the_batch(self) -> None:
        self._waits = True
        for number in self._before:
            signal.signal(number, self._handle)  # Spark has taken Ctrl-C for itself while it started

    def _handle(self, _: int, __: FrameType | None) -> None:
        if not self._waits or self.asked.is_set():
            raise KeyboardInterrupt
        self.asked.set()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _watch(query: Query, feed: QueryFeed, display: Display, interruption: Interruption) -> None:
    """Until the query ends; raises what made it fail."""
    stopping = False
    try:
        while not query.wait(LOOK_SECONDS):
            if interruption.asked.is_set() and not stopping:
                stopping = True
                threading.Thread(target=query.stop, daemon=True).start()
            snapshot = feed.snapshot()
            display.update({**snapshot, "state": "stopping"} if stopping else snapshot)
    finally:
        display.update(feed.snapshot())


@dataclass(frozen=True, slots=True)
class Standing:
    """What a query has done since it was created."""

    batches: int
    progress: Progress | None


def read_standing(log: Log, query: str) -> Standing:
    from potok.views.ledger_view import read_entry
    from potok.views.progress import read_progress

    entry = read_entry(log, query)
    return Standing(entry.batch if entry else 0, read_progress(log, query))


def summary(before: Standing, after: Standing) -> dict[str, Any]:
    """What happened between two looks at a query, of which the second found it started."""
    old, new = before.progress, after.progress
    assert new is not None
    letters: Mapping[str, int] = old.dead_letters_by_reason if old else {}
    by_reason = {reason: count - letters.get(reason, 0) for reason, count in new.dead_letters_by_reason.items()}
    return {
        "query": new.query,
        "state": new.state,
        "uptime_ms": new.committed_at_ms - new.started_at_ms,
        "batches": after.batches - before.batches,
        "records_in": new.total_in - (old.total_in if old else 0),
        "records_out": new.total_out - (old.total_out if old else 0),
        "dead_letters_by_reason": {reason: count for reason, count in by_reason.items() if count},
    }


def _display(*, as_json: bool) -> Display:
    from potok.cli.panel import Lines, Objects, Screen

    if as_json:
        return Objects()
    return Screen() if sys.stdout.isatty() else Lines()


def _mention_shards(log: Log, query: str, wanted: int | None) -> None:
    from potok.views.ledger_view import read_entry

    entry = read_entry(log, query)
    if entry is not None and wanted not in (None, entry.shards):
        note(f'the state of query "{query}" is cut {entry.shards} ways since it was created; --shards is not used')
