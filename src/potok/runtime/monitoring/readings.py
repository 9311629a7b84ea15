"""The state and progress of each query at one moment, from its batch loop in this process or as stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from potok.log.broker import Broker
from potok.runtime.monitoring.figures import QueryFigures
from potok.runtime.queries.query_group import QueryGroup
from potok.snapshots.progress import Progress, progress_of, read_progress


@dataclass(frozen=True, slots=True)
class Reading:
    """A query: its state, the progress of its last commit, its offsets, and what its process has counted."""

    query: str
    state: str
    error: str = ""
    batch: int = 0
    """The last batch that it committed; 0 if there is none, or if it is unknown."""
    progress: Progress | None = None
    offsets: Mapping[str, Mapping[int, int]] | None = None
    figures: QueryFigures | None = None


Readings = Callable[[], Iterable[Reading]]


def group_readings(group: QueryGroup) -> Iterator[Reading]:
    """Yield the readings of the queries of a batch loop in this process."""
    for query in group.members():
        state, error = query.standing(group.waiting_for)
        yield Reading(
            query.name,
            state.lower(),
            "" if error is None else error.message,
            query.runner.ledger.entry.batch,
            progress_of(query.name, query.runner.metrics.committed),
            query.offsets,
            query.figures,
        )


def stored_readings(broker: Broker, queries: Iterable[str]) -> Iterator[Reading]:
    """Yield the readings that queries of other processes stored with their last commits."""
    for query in queries:
        progress = read_progress(broker, query)
        if progress is None:
            yield Reading(query, "starting")
            continue
        offsets = {
            topic: {int(part): offset for part, offset in parts.items()} for topic, parts in progress.offsets.items()
        }
        yield Reading(query, progress.state, progress.error, progress.batch, progress, offsets)
