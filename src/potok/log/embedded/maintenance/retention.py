"""Delete old segments, by age and by size, but never protected ones."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from potok.log.embedded import catalog
from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.metadata import Transaction
from potok.log.errors import InvalidName

PartitionId = tuple[str, int]

_LONGEST = 500


def set_protected(txn: Transaction, owner: str, offsets: Mapping[PartitionId, int]) -> None:
    key = b"x" + owner.encode()
    if not 1 < len(key) <= _LONGEST:
        raise InvalidName("owner", owner, f"use 1 to {_LONGEST - 1} bytes")
    if offsets:
        txn.put(key, orjson.dumps([[*topic_partition, offset] for topic_partition, offset in offsets.items()]))
    else:
        txn.delete(key)


def protected(txn: Transaction) -> dict[PartitionId, int]:
    """Return the lowest protected offset of each partition."""
    lowest: dict[PartitionId, int] = {}
    for _, value in catalog.scan(txn, b"x"):
        for topic, partition, offset in orjson.loads(value):
            lowest[topic, partition] = min(offset, lowest.get((topic, partition), offset))
    return lowest


def expire(txn: Transaction, topic: Topic, partition: int, keep_from: int | None, now_ms: int) -> list[Segment]:
    """Remove segments that are too old or too many from the metadata; the caller deletes their files.

    The active segment always stays. Age counts from ingestion: a record with an old timestamp is not an old record.
    """
    expired = expired_segments(txn, topic, partition, keep_from, now_ms)
    if expired:
        catalog.delete_segments(txn, topic, partition, expired)
        state = catalog.get_state(txn, topic, partition)
        sealed = state.sealed_bytes - sum(segment.size for segment in expired)
        after = state._replace(start_offset=expired[-1].end_offset, sealed_bytes=sealed)
        catalog.put_state(txn, topic, partition, after)
    return expired


def expired_segments(
    txn: Transaction, topic: Topic, partition: int, keep_from: int | None, now_ms: int
) -> list[Segment]:
    """Return the oldest segments that are too old or too many and not protected."""
    config = topic.config
    if not config.expires:
        return []
    state = catalog.get_state(txn, topic, partition)
    size = state.sealed_bytes + state.position
    expired = []
    for segment in catalog.segments(txn, topic, partition):
        old = config.retention_ms is not None and segment.last_ingested < now_ms - config.retention_ms
        large = config.retention_bytes is not None and size > config.retention_bytes
        needed = keep_from is not None and segment.end_offset > keep_from
        if segment.base_offset == state.segment_base or needed or not (old or large):
            break
        size -= segment.size
        expired.append(segment)
    return expired
