"""Queries that another process runs: what they do, told by what they leave in the log and by who holds their locks."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from potok.log.broker import Broker
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.errors import NotCaughtUp
from potok.runtime.queries.group_owner import group_directory
from potok.runtime.queries.lock import QueryLock, is_held
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.statements.catalog.catalog_state import Wanted

LOOK_S = 0.1
BEGIN_S = 10.0
"""How long another process is given to begin a query that was written down for it."""

CATALOGUE = "sql"
"""The shared query that all queries of the catalogue are members of."""


def run_elsewhere(broker: Broker) -> bool:
    """Whether some process runs the queries of the catalogue at the moment; this one may be it."""
    return is_held(_directory(broker))


def _directory(broker: Broker) -> Path:
    return group_directory(broker, CATALOGUE)


@contextmanager
def alone(broker: Broker) -> Iterator[None]:
    """Nobody runs the queries of the catalogue meanwhile; raises `QueryAlreadyRuns` where somebody does."""
    lock = QueryLock(_directory(broker), CATALOGUE)
    try:
        yield
    finally:
        lock.release()


def state_elsewhere(broker: Broker, wanted: Wanted) -> tuple[str, str]:
    """What a query does that this process does not run, and what is wrong with it. One that failed holds no lock, and
    says so in its progress until somebody begins it again."""
    progress = read_progress(broker, wanted.query_id)
    if is_held(query_directory(broker, wanted.query_id)):
        if progress is not None and progress.state == "waiting":
            return "WAITING", progress.error
        paused = wanted.paused if progress is None else progress.state == "paused"
        return ("PAUSED" if paused else "RUNNING"), ""
    if wanted.broken:
        return "ERROR", wanted.broken
    if progress is not None and progress.state == "failed":
        return "ERROR", progress.error
    return ("PAUSED" if wanted.paused else "STOPPED"), ""


def left_behind(broker: Broker, wanted: Wanted) -> int:
    """How many records wait for a query that nobody runs; 0 if somebody does."""
    return 0 if state_elsewhere(broker, wanted)[0] in ("RUNNING", "WAITING", "PAUSED") else _left(broker, wanted)


def _left(broker: Broker, wanted: Wanted) -> int:
    entry = read_entry(broker, wanted.query_id)
    ends = broker.end_offsets_of([topic for topic in wanted.topology.source_topics if broker.has_topic(topic)])
    return entry.offsets.pending(ends) if entry is not None else sum(sum(parts.values()) for parts in ends.values())


def wait_elsewhere(broker: Broker, queries: Collection[Wanted], timeout_s: float = math.inf) -> None:
    """Wait until the process that runs the queries has taken in what there is. Raises `NotCaughtUp` where that takes
    longer."""
    begun, end = time.monotonic() + BEGIN_S, time.monotonic() + timeout_s
    while behind := behind_elsewhere(broker, queries, unbegun=time.monotonic() < begun):
        if time.monotonic() > end:
            left = {wanted.query_id: _left(broker, wanted) for wanted in queries if wanted.query_id in behind}
            raise NotCaughtUp(left, f"after {timeout_s:g} seconds")
        time.sleep(LOOK_S)


def behind_elsewhere(broker: Broker, queries: Iterable[Wanted], *, unbegun: bool) -> set[str]:
    """The queries that have records left to read, by what they leave in the log. Those that rest or have failed are not
    waited for. Ledgers are looked at before the ends, which their output may have moved.

    Args:
        unbegun: Those that do not run count too. They are about to begin, or cannot: that is not told here.
    """
    if not run_elsewhere(broker):
        return set()
    states = {wanted.query_id: state_elsewhere(broker, wanted)[0] for wanted in queries}
    awaited = ("RUNNING", "WAITING", "STOPPED") if unbegun else ("RUNNING", "WAITING")
    waited_for = [query_id for query_id, state in states.items() if state in awaited]
    entries = {query_id: read_entry(broker, query_id) for query_id in waited_for}
    topics = {topic for entry in entries.values() if entry is not None for topic in entry.offsets.topics}
    ends = broker.end_offsets_of([topic for topic in sorted(topics) if broker.has_topic(topic)])
    found: set[str] = set()
    for query_id, entry in entries.items():
        if entry is None or entry.offsets.pending({t: ends[t] for t in entry.offsets.topics if t in ends}):
            found.add(query_id)
    return found
