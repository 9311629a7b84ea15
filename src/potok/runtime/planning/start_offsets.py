"""Where a query starts or resumes: its offsets in the log, and what to do if the log has deleted those records."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.errors import FellBehindError
from potok.log.start import Start, start_offsets
from potok.state.entry import Entry, metadata_key_of
from potok.topology.graph import Topology
from potok.topology.nodes import TableSource

log = logging.getLogger(__name__)

Positions = Mapping[str, Mapping[int, int]]
"""An offset for each partition of each topic."""


class OnLost(StrEnum):
    """What a query does when records that it has not read were deleted."""

    STOP = "stop"
    JUMP = "jump"
    ARCHIVE = "archive"


class TopicReplaced(QueryError):
    """A topic that was deleted and created again since the query read it."""

    def __init__(self, query: str, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" was deleted and created again since query "{query}" read it',
            hint=f"its offsets now refer to other records; start over: potok offsets reset {query} --forget",
        )


def check_topics(broker: Broker, query: str, topics: Sequence[str], entry: Entry) -> None:
    """Raise if a topic is not the one that the ledger was written for."""
    known = {topic: entry.topic_ids[topic] for topic in topics if topic in entry.topic_ids}
    found = broker.topic_ids(sorted(known))
    for topic, topic_id in known.items():
        if found[topic] != topic_id:
            raise TopicReplaced(query, topic)


def offsets_at(broker: Broker, topics: Sequence[str], at_ms: int) -> dict[str, dict[int, int]]:
    """Return the offset of the first record of each partition whose timestamp is at or after an instant."""
    return {
        topic: {part: broker.offset_at(topic, part, at_ms) for part in range(broker.partitions(topic))}
        for topic in topics
    }


def start_positions(broker: Broker, topology: Topology, start: Start) -> Positions:
    """Resolve a start to the current offsets of the log. `latest` and an instant apply to streams: a table is read from
    its first record, or it would be incomplete."""
    tables = {source.topic for source in topology.of_type(TableSource)}
    topics = [topic for topic in topology.source_topics if topic not in tables and broker.has_topic(topic)]
    return start_offsets(broker, topics, start)


def starting_offsets(
    broker: Broker, topics: Sequence[str], known: Positions, start: Positions, on_lost: OnLost, query: str
) -> dict[str, dict[int, int]]:
    """Return the offsets to resume at: those of the ledger, else those of the start, else the first in the log."""
    found: dict[str, dict[int, int]] = {}
    for topic in topics:
        starts, earliest = broker.start_offsets(topic), broker.earliest_offsets(topic)
        # A partition added to a topic that has been read is read from its first record, wherever the query started.
        wanted = {**starts, **(known[topic] if topic in known else start.get(topic, {}))}
        found[topic] = {
            part: _readable(offset, (starts.get(part, 0), earliest.get(part, 0)), on_lost, (query, topic, part))
            for part, offset in wanted.items()
        }
    return found


def _readable(offset: int, firsts: tuple[int, int], on_lost: OnLost, position: tuple[str, str, int]) -> int:
    """Return an offset that can be read, or raise the error that says why there is none."""
    first, earliest = firsts
    if offset >= first or (on_lost is OnLost.ARCHIVE and offset >= earliest):
        return offset
    query, topic, part = position
    if on_lost is OnLost.JUMP:
        log.warning(
            'query "%s" skips %d records of "%s" partition %d that were deleted before they were read: '
            "from offset %d to %d",
            query,
            first - offset,
            topic,
            part,
            offset,
            first,
        )
        return first
    raise FellBehindError(f'query "{query}"', topic, part, offset, first, earliest)


def protect(broker: Broker, query: str, positions: Positions) -> None:
    """Protect records that a query has not read, or may read again, from retention and compaction."""
    flat = {(topic, part): offset for topic, parts in positions.items() for part, offset in parts.items()}
    broker.set_protected(metadata_key_of(query, ""), flat)
