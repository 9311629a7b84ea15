"""Find an offset by time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from potok.log.embedded import catalog
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments.read import read_range


def offset_at(metadata: Metadata, topics: Path, name: str, partition: int, timestamp_ms: int) -> int:
    """Return the first offset at or after a time. The index narrows it down to the frames between two entries."""

    def narrow(since: int) -> tuple[int, int]:
        return metadata.read(lambda txn: _narrow(txn, name, partition, timestamp_ms, since))

    start, end = narrow(0)
    while start < end:
        for batch in read_range(metadata, topics, name, partition, start, end):
            reached = np.flatnonzero(batch.column("timestamp").to_numpy() >= timestamp_ms)
            if len(reached):
                return int(batch.column("offset")[int(reached[0])].as_py())
        # Compaction has removed the record; another one may follow.
        start, end = narrow(end)
    return end


def _narrow(txn: Transaction, name: str, partition: int, timestamp_ms: int, since: int) -> tuple[int, int]:
    """Return the offsets between which the result is, or twice the end offset if no record is that late."""
    topic = catalog.get_topic(txn, name, partition)
    state = catalog.get_state(txn, topic, partition)
    for segment in catalog.segments(txn, topic, partition):
        if segment.max_timestamp < timestamp_ms or segment.end_offset <= since:
            continue
        start = max(segment.base_offset, state.start_offset, since)
        for entry in catalog.index_from(txn, topic, partition, segment.base_offset):
            if entry.offset >= segment.end_offset:
                break
            if entry.max_timestamp >= timestamp_ms and entry.offset > start:
                return start, entry.offset
            start = max(start, entry.offset)
        return start, segment.end_offset
    return state.end_offset, state.end_offset
