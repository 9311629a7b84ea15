"""In which order records are read: one partition after the other, or the oldest first where a lookup depends on it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from potok.topology.graph import Topology
from potok.topology.nodes import HistoryLookup, Node, StreamSource, TableLookup, TableSource
from tests.oracle.decode import Undecodable, decode
from tests.oracle.event_time import Unreadable, event_time, next_stream_time
from tests.oracle.records import Input
from tests.oracle.tables import topics_of

Inputs = Mapping[str, Mapping[int, Sequence[Input]]]
Fields = Mapping[str, Container[str] | None]
Turn = tuple[str, int]


def order_of(topology: Topology, inputs: Inputs, fields: Fields) -> list[Turn]:
    return time_order(topology, inputs, fields) if any(map(does_not_wait, topology)) else partition_order(inputs)


def does_not_wait(node: Node) -> bool:
    """Whether a record meets the row as of its turn."""
    return isinstance(node, TableLookup) or (isinstance(node, HistoryLookup) and node.grace_ms is None)


def partition_order(inputs: Inputs) -> list[Turn]:
    """One partition after the other."""
    return [
        (topic, partition)
        for topic, partitions in inputs.items()
        for partition, records in sorted(partitions.items())
        for _ in records
    ]


def time_order(topology: Topology, inputs: Inputs, fields: Fields) -> list[Turn]:
    """Always the partition whose next record is the oldest, of equally old ones a topic that only feeds tables; all
    input is there from the beginning."""
    lookups = [node for node in topology if isinstance(node, TableLookup | HistoryLookup)]
    on_the_left = set().union(*(_own_topics(node.stream) for node in lookups))
    on_the_right = set().union(*(topics_of(node.table) for node in lookups))
    sources = {source.topic: source for source in topology.sources}
    turns: list[tuple[int, bool, str, int, int]] = []
    for topic, partitions in inputs.items():
        follows = topic in on_the_left or topic not in on_the_right
        for partition, records in partitions.items():
            stream_time_ms: int | None = None
            for offset, read in enumerate(records):
                stream_time_ms = _clock_after(sources[topic], read, fields.get(topic), stream_time_ms)
                turns.append(
                    (-(1 << 62) if stream_time_ms is None else stream_time_ms, follows, topic, partition, offset)
                )
    return [(topic, partition) for _, _, topic, partition, _ in sorted(turns)]


def _own_topics(node: Node) -> set[str]:
    """The topics of the records that come out of a step, without those of rows that they met."""
    if isinstance(node, TableLookup | HistoryLookup):
        return _own_topics(node.stream)
    return topics_of(node) if not node.upstreams else set().union(*map(_own_topics, node.upstreams))


def _clock_after(
    source: StreamSource | TableSource, read: Input, fields: Container[str] | None, stream_time_ms: int | None
) -> int | None:
    """The log knows its own timestamps of all records; those that come from a value, of the readable ones alone."""
    if source.timestamps.function is None:
        return read.timestamp_ms if stream_time_ms is None else max(stream_time_ms, read.timestamp_ms)
    try:
        key, value = decode(read.key, source.key), decode(read.value, source.value, fields)
        return next_stream_time(source.timestamps, stream_time_ms, event_time(source.timestamps, key, value, read))
    except (Undecodable, Unreadable):
        return stream_time_ms
