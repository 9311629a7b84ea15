"""Rebuild the tables of a query next to the served ones and swap, in one go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from potok.log.broker import Broker
from potok.runtime.batches.executor import ExecutorFactory
from potok.runtime.operations.shadow import catch_up, shadow_of, start_shadow, swap
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.lock import QueryAlreadyRuns, is_held
from potok.runtime.queries.query import Query
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.tables import NoSuchQuery, known_queries
from potok.topology.graph import Topology

LOOK_S = 0.1

Phase = Literal["building", "waiting", "swapping"]


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """How far a rebuild is: `read` of `total` records that the query has read. It is `waiting` while it has read all of
    them and the query still runs.
    """

    phase: Phase
    read: int
    total: int

    @property
    def percent(self) -> float:
        return 100.0 if self.read >= self.total else 100.0 * self.read / self.total


Report = Callable[[RebuildProgress], None]


def rebuild(
    topology: Topology,
    broker: Broker,
    settings: Settings,
    start_executor: ExecutorFactory,
    report: Report,
    asked: threading.Event,
) -> str | None:
    """Build a shadow of a query, follow the query until it has stopped, and swap.

    Return the name under which the old cells are kept; None if `asked` was set before: the shadow is kept, and the next
    rebuild resumes it.
    """
    if read_entry(broker, topology.name) is None:
        raise NoSuchQuery(topology.name, known_queries(broker))
    offsets = _starts(topology, broker)
    while True:
        with start_shadow(topology, broker, settings, start_executor) as building:
            if not _follow(building, topology, broker, offsets, report, asked):
                return None
        try:
            found = progress_of(topology, broker, offsets)
            report(RebuildProgress("swapping", found.read, found.total))
            with catch_up(topology, broker, settings, start_executor) as last:
                last.wait()
            return swap(broker, topology.name)
        except QueryAlreadyRuns:
            # The query was started again meanwhile.
            continue


def _follow(
    building: Query,
    topology: Topology,
    broker: Broker,
    starts: dict[str, dict[int, int]],
    report: Report,
    asked: threading.Event,
) -> bool:
    """Wait until the shadow has read what the query has read and the query has stopped; False if interrupted."""
    while True:
        found = progress_of(topology, broker, starts)
        report(found)
        if found.read >= found.total and not is_held(query_directory(broker, topology.name)):
            return True
        if asked.is_set():
            return False
        if building.wait(LOOK_S):
            return not asked.is_set()


def progress_of(topology: Topology, broker: Broker, starts: dict[str, dict[int, int]]) -> RebuildProgress:
    live, built = read_entry(broker, topology.name), read_entry(broker, shadow_of(topology).name)
    assert live is not None
    reached = {} if built is None else built.offsets.topics
    total = read = 0
    for topic, parts in live.offsets.topics.items():
        for part, end in parts.items():
            start = min(starts.get(topic, {}).get(part, 0), end)
            total += end - start
            read += min(max(reached.get(topic, {}).get(part, 0) - start, 0), end - start)
    return RebuildProgress("building" if read < total else "waiting", read, total)


def _starts(topology: Topology, broker: Broker) -> dict[str, dict[int, int]]:
    return {topic: dict(broker.start_offsets(topic)) for topic in topology.source_topics if broker.has_topic(topic)}
