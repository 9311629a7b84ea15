"""Count the records of topics. Offsets are only an upper bound: they include transaction markers, aborted records and
records that compaction removed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from potok.log.broker import PartitionDescription, TopicDescription
from potok.log.kafka.clients import Clients

MOST_OFFSETS = 100_000
"""How many offsets are read, shortest partitions first; for the others the upper bound is reported."""

TIMEOUT_S = 3.0
_PIECE = 10_000
_WAIT_S = 0.1

PartitionId = tuple[str, int]


@dataclass(slots=True)
class _Range:
    """Offsets that are counted up to `position`, with `records` so far."""

    position: int
    end: int
    records: int = 0

    @property
    def is_counted(self) -> bool:
        return self.position >= self.end


def count_records(clients: Clients, topics: Sequence[TopicDescription]) -> list[TopicDescription]:
    """Set the number of records of each partition that can be counted quickly.

    One consumer reads all partitions concurrently, so that many small topics take no longer than one.
    """
    ranges = {
        (topic.name, part.partition): _Range(part.start_offset, part.end_offset)
        for topic, part in _shortest(topics)
        if part.start_offset < part.end_offset
    }
    if ranges:
        _read(clients, ranges)
    return [_counted(topic, ranges) for topic in topics]


def _shortest(topics: Sequence[TopicDescription]) -> Iterable[tuple[TopicDescription, PartitionDescription]]:
    found = [(part.end_offset - part.start_offset, topic, part) for topic in topics for part in topic.partitions]
    left = MOST_OFFSETS
    for length, topic, part in sorted(found, key=lambda item: item[0]):
        left -= length
        if left < 0:
            return
        yield topic, part


def _read(clients: Clients, ranges: dict[PartitionId, _Range]) -> None:
    consumer = clients.reader()
    try:
        consumer.assign([TopicPartition(*topic_partition, found.position) for topic_partition, found in ranges.items()])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline and not all(found.is_counted for found in ranges.values()):
            for message in consumer.consume(_PIECE, 0) or consumer.consume(1, _WAIT_S):
                _note(message, ranges)
    except KafkaException:
        return  # the rest keeps its upper bound
    finally:
        consumer.close()


def _note(message: Message, ranges: dict[PartitionId, _Range]) -> None:
    topic, partition, offset, error = message.topic(), message.partition(), message.offset(), message.error()
    if topic is None or partition is None or offset is None or (topic, partition) not in ranges:
        return
    found = ranges[topic, partition]
    if error is None and offset < found.end:
        found.records += 1
    if error is None:
        found.position = max(found.position, offset + 1)
    elif error.code() == KafkaError._PARTITION_EOF:
        found.position = max(found.position, offset)


def _counted(topic: TopicDescription, ranges: dict[PartitionId, _Range]) -> TopicDescription:
    parts = []
    for part in topic.partitions:
        found = ranges.get((topic.name, part.partition))
        if found is None:
            parts.append(replace(part, exact=part.start_offset == part.end_offset))
            continue
        most = found.records + max(0, found.end - found.position)
        removed = part.end_offset - part.start_offset - most
        parts.append(replace(part, removed=removed, exact=found.is_counted))
    return replace(topic, partitions=tuple(parts))
