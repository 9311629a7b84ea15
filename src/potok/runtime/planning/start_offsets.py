"""Where a query goes on, or begins: its offsets in the log, and what to do when the log no longer holds them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.errors import FellBehind
from potok.state.entry import Entry, metadata_key_of
from potok.topology.graph import Topology
from potok.topology.nodes import TableSource

log = logging.getLogger(__name__)

Places = Mapping[str, Mapping[int, int]]
"""An offset for each partition of each topic."""

Begin = Literal["earliest", "latest"] | Places
"""Where a query begins that never ran. `latest` holds for streams: a table is read from its first record on, because it
would not be the table otherwise."""


class OnLost(StrEnum):
    """What a query does whose next records were deleted before it came to them."""

    STOP = "stop"
    JUMP = "jump"
    ARCHIVE = "archive"


class TopicReplaced(QueryError):
    """A topic that was deleted and created again since the query read it."""

    def __init__(self, query: str, topic: str) -> None:
        super().__init__(
            f'topic "{topic}" was deleted and created again since query "{query}" read it',
            hint=f"its offsets mean other records now; start over: potok offsets reset {query} --forget",
        )


def check_topics(broker: Broker, query: str, topics: Sequence[str], entry: Entry) -> None:
    """Whether all topics are those that the ledger tells of."""
    known = {topic: entry.topic_ids[topic] for topic in topics if topic in entry.topic_ids}
    found = broker.topic_ids(sorted(known))
    for topic, topic_id in known.items():
        if found[topic] != topic_id:
            raise TopicReplaced(query, topic)


def offsets_at(broker: Broker, topics: Sequence[str], at_ms: int) -> dict[str, dict[int, int]]:
    """The first record of each partition whose timestamp is not before an instant."""
    return {
        topic: {part: broker.offset_at(topic, part, at_ms) for part in range(broker.partitions(topic))}
        for topic in topics
    }


def places_of(broker: Broker, topology: Topology, begin: Begin) -> Places:
    """What a beginning means in the log of this moment."""
    if not isinstance(begin, str):
        return begin
    if begin == "earliest":
        return {}
    tables = {source.topic for source in topology.of_type(TableSource)}
    topics = [topic for topic in topology.source_topics if topic not in tables and broker.has_topic(topic)]
    return broker.end_offsets_of(topics) if topics else {}


def begin_at(
    broker: Broker, topics: Sequence[str], known: Places, begin: Places, on_lost: OnLost, query: str
) -> dict[str, dict[int, int]]:
    """The offsets to go on from: those known, or else those to begin at, or else the first that the log holds."""
    found: dict[str, dict[int, int]] = {}
    for topic in topics:
        starts, earliest = broker.start_offsets(topic), broker.earliest_offsets(topic)
        # A partition that came to a topic which was read already is read from its first record, wherever that began.
        wanted = {**starts, **(known[topic] if topic in known else begin.get(topic, {}))}
        found[topic] = {
            part: _held(offset, (starts.get(part, 0), earliest.get(part, 0)), on_lost, (query, topic, part))
            for part, offset in wanted.items()
        }
    return found


def _held(offset: int, firsts: tuple[int, int], on_lost: OnLost, place: tuple[str, str, int]) -> int:
    """An offset that can be read, or the error that says why there is none."""
    first, earliest = firsts
    if offset >= first or (on_lost is OnLost.ARCHIVE and offset >= earliest):
        return offset
    query, topic, part = place
    if on_lost is OnLost.JUMP:
        log.warning(
            'query "%s" jumps over %d records of "%s" partition %d that were deleted before it came to them: '
            "from offset %d to %d",
            query,
            first - offset,
            topic,
            part,
            offset,
            first,
        )
        return first
    raise FellBehind(f'query "{query}"', topic, part, offset, first, earliest)


def protect(broker: Broker, query: str, places: Places) -> None:
    """Keep retention and compaction from what a query has not read, or may read again."""
    flat = {(topic, part): offset for topic, parts in places.items() for part, offset in parts.items()}
    broker.set_protected(metadata_key_of(query, ""), flat)
