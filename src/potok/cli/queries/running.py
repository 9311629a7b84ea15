"""What commands that run a query share: signals, the display, and a summary at the end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from potok.errors import PotokError
from potok.runtime.queries.stop_deadline import StopDeadline
from potok.settings import Settings

if TYPE_CHECKING:
    from potok.cli.queries.panel import Display
    from potok.log.broker import Broker as Log
    from potok.runtime.queries.query import Query
    from potok.server.figures.query_feed import QueryFeed
    from potok.snapshots.progress import Progress

LOOK_SECONDS = 0.25


def run_with_display(log: Log, name: str, display: Display, start: Callable[[], Query]) -> None:
    """Start a query and show its progress until it ends, or until Ctrl-C or SIGTERM."""
    from potok.server.figures.query_feed import QueryFeed

    with Interruption() as interruption:
        before = read_standing(log, name)
        started = False
        try:
            with display.live():
                with display.starting():
                    query = start()
                started = True
                interruption.wait_for_the_batch()
                with display.running():
                    _watch(query, QueryFeed(log, name), display, interruption)
        finally:
            if started:
                display.end(summary(before, read_standing(log, name)))


class Interruption:
    """Handle Ctrl-C and SIGTERM: exit immediately while the program starts; later, the first one stops the query at the
    end of a batch, within the setting `stop_timeout`, and the second one exits immediately."""

    def __init__(self, *, bounded: bool = True) -> None:
        """`bounded` ends the process after `stop_timeout`; without it, the command bounds its own end."""
        self._bounded = bounded
        self.asked = threading.Event()
        self.signal = ""
        """The name of the first signal."""
        self.deadline = StopDeadline(0)
        self._waits = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def wait_for_the_batch(self) -> None:
        self._waits = True
        if self._bounded:
            self.deadline = StopDeadline(Settings.load().stop_timeout_ms)
        for number in self._before:
            signal.signal(number, self._handle)  # Spark replaced the handler while it started

    def _handle(self, number: int, _: FrameType | None) -> None:
        if not self._waits or self.asked.is_set():
            raise KeyboardInterrupt
        self.signal = signal.Signals(number).name
        self.deadline.begin()
        self.asked.set()

    def __exit__(self, *_: object) -> None:
        self.deadline.stopped()
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _watch(query: Query, feed: QueryFeed, display: Display, interruption: Interruption) -> None:
    """Wait until the query ends; raises its error if it fails."""
    stopping, snapshot = False, feed.snapshot()
    try:
        while not query.wait(LOOK_SECONDS):
            if interruption.asked.is_set() and not stopping:
                stopping = True
                display.stopping(interruption.signal, interruption.deadline.timeout_ms)
                threading.Thread(target=query.stop, daemon=True).start()
            if interruption.deadline.is_over:
                raise interruption.deadline.error()
            waits = query.waiting_for
            if waits is not None:
                # A server that does not answer the query would not answer the feed either.
                snapshot = {**snapshot, "state": "waiting", "error": waits.message}
            else:
                snapshot = _look(feed, snapshot)
            display.update({**snapshot, "state": "stopping"} if stopping else snapshot)
    finally:
        display.update(_look(feed, snapshot))


def _look(feed: QueryFeed, before: dict[str, Any]) -> dict[str, Any]:
    """Return a new snapshot, or the previous one while the log is unreachable."""
    try:
        return feed.snapshot()
    except PotokError as error:
        if not error.passing:
            raise
        return before


@dataclass(frozen=True, slots=True)
class Standing:
    """Return the totals of a query since it was created."""

    batches: int
    progress: Progress | None


def read_standing(log: Log, query: str) -> Standing:
    from potok.snapshots.ledger_view import read_entry
    from potok.snapshots.progress import read_progress

    entry = read_entry(log, query)
    return Standing(entry.batch if entry else 0, read_progress(log, query))


def summary(before: Standing, after: Standing) -> dict[str, Any]:
    """Return the difference between two snapshots of a query."""
    old, new = before.progress, after.progress
    assert new is not None
    dead_letters: Mapping[str, int] = old.dead_letters_by_reason if old else {}
    by_reason = {reason: count - dead_letters.get(reason, 0) for reason, count in new.dead_letters_by_reason.items()}
    return {
        "query": new.query,
        "state": new.state,
        "uptime_ms": new.committed_at_ms - new.started_at_ms,
        "batches": after.batches - before.batches,
        "records_in": new.total_in - (old.total_in if old else 0),
        "records_out": new.total_out - (old.total_out if old else 0),
        "dead_letters_by_reason": {reason: count for reason, count in by_reason.items() if count},
    }


def display_of(*, as_json: bool) -> Display:
    from potok.cli.queries.panel import Lines, Objects, Screen

    if as_json:
        return Objects()
    return Screen() if sys.stdout.isatty() else Lines()
