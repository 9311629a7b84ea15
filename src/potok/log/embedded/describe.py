"""Describe a topic: its partitions and their sizes, what is left to compact, and where the archive starts."""

from __future__ import annotations

from potok.log.broker import PartitionDescription, TopicDescription
from potok.log.embedded import catalog
from potok.log.embedded.catalog import Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.metadata import Transaction
from potok.log.embedded.segments import sealed


def describe_topic(txn: Transaction, name: str) -> TopicDescription:
    topic = catalog.get_topic(txn, name)
    parts = tuple(_describe_partition(txn, topic, partition) for partition in range(topic.partitions))
    return TopicDescription(name, topic.id.hex(), parts, topic.config, topic.created_at_ms)


def earliest_offsets(txn: Transaction, name: str) -> dict[int, int]:
    topic = catalog.get_topic(txn, name)
    return {
        partition: archived.earliest(txn, topic, partition, catalog.get_state(txn, topic, partition).start_offset)
        for partition in range(topic.partitions)
    }


def _describe_partition(txn: Transaction, topic: Topic, partition: int) -> PartitionDescription:
    state = catalog.get_state(txn, topic, partition)
    segments = catalog.segments(txn, topic, partition)
    clean = sealed.clean_until(txn, topic, partition)
    dirty = (
        [part for part in segments if clean < part.end_offset <= state.segment_base] if topic.config.compacted else []
    )
    earliest = archived.earliest(txn, topic, partition, state.start_offset)
    return PartitionDescription(
        partition,
        state.start_offset,
        state.end_offset,
        state.sealed_bytes + state.position,
        len(segments),
        removed=state.end_offset - state.start_offset - sum(segment.held for segment in segments),
        sealed_bytes=state.sealed_bytes,
        dirty_bytes=sum(segment.size for segment in dirty),
        earliest_offset=earliest if earliest < state.start_offset else None,
    )
