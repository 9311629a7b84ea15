"""Observe queries that another process runs, by their metadata in the log and by their locks."""

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
START_S = 10.0
"""How long another process has to start a new query."""

CATALOG_GROUP = "sql"
"""The name of the group of all queries of the catalog."""


def queries_are_running(broker: Broker) -> bool:
    """Return whether a process, possibly this one, runs the queries of the catalog."""
    return is_held(_directory(broker))


def _directory(broker: Broker) -> Path:
    return group_directory(broker, CATALOG_GROUP)


@contextmanager
def alone(broker: Broker) -> Iterator[None]:
    """Prevent other processes from running the queries of the catalog; raises `QueryAlreadyRuns` if one does."""
    lock = QueryLock(_directory(broker), CATALOG_GROUP)
    try:
        yield
    finally:
        lock.release()


def remote_state(broker: Broker, wanted: Wanted) -> tuple[str, str]:
    """Return the state and the error of a query that this process does not run. A failed query holds no lock and its
    progress has the error until it is started again."""
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


def unprocessed_records(broker: Broker, wanted: Wanted) -> int:
    """Return the lag of a query that no process runs; 0 if one does."""
    return 0 if remote_state(broker, wanted)[0] in ("RUNNING", "WAITING", "PAUSED") else _left(broker, wanted)


def _left(broker: Broker, wanted: Wanted) -> int:
    entry = read_entry(broker, wanted.query_id)
    ends = broker.end_offsets_of([topic for topic in wanted.topology.source_topics if broker.has_topic(topic)])
    return entry.offsets.pending(ends) if entry is not None else sum(sum(parts.values()) for parts in ends.values())


def wait_remote(broker: Broker, queries: Collection[Wanted], timeout_s: float = math.inf) -> None:
    """Wait until the process that runs the queries has caught up. Raises `NotCaughtUp` after the timeout."""
    start_by, end = time.monotonic() + START_S, time.monotonic() + timeout_s
    while behind := lagging_queries(broker, queries, include_stopped=time.monotonic() < start_by):
        if time.monotonic() > end:
            left = {wanted.query_id: _left(broker, wanted) for wanted in queries if wanted.query_id in behind}
            raise NotCaughtUp(left, f"after {timeout_s:g} seconds")
        time.sleep(LOOK_S)


def lagging_queries(broker: Broker, queries: Iterable[Wanted], *, include_stopped: bool) -> set[str]:
    """Return the queries that have records left to read. Queries that are paused or have failed are excluded. Ledgers
    are read before the end offsets, which the output of the queries may move.

    Args:
        include_stopped: Include queries that do not run: they are about to start, or cannot.
    """
    if not queries_are_running(broker):
        return set()
    states = {wanted.query_id: remote_state(broker, wanted)[0] for wanted in queries}
    awaited = ("RUNNING", "WAITING", "STOPPED") if include_stopped else ("RUNNING", "WAITING")
    waited_for = [query_id for query_id, state in states.items() if state in awaited]
    entries = {query_id: read_entry(broker, query_id) for query_id in waited_for}
    topics = {topic for entry in entries.values() if entry is not None for topic in entry.offsets.topics}
    ends = broker.end_offsets_of([topic for topic in sorted(topics) if broker.has_topic(topic)])
    found: set[str] = set()
    for query_id, entry in entries.items():
        if entry is None or entry.offsets.pending({t: ends[t] for t in entry.offsets.topics if t in ends}):
            found.add(query_id)
    return found
