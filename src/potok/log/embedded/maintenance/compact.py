"""Compaction: retain the last record of each key in the sealed segments of a partition, with its offset.

A pass maps the keys of the segments that no pass has seen to their last offsets, then rewrites the partition from its
start, group by group (`rewrite.py`). A tombstone is only removed after everything before it was rewritten, because
groups are in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.maintenance.key_map import Ints, KeyMap
from potok.log.embedded.maintenance.rewrite import Flags, Overtaken, Rewriter, tombstones
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.maintenance import Compaction

MAP_KEYS = 2_000_000
"""A pass ends with the segment in which it has reached this many keys, and another one follows: a map of 50 MB, and
three times that while it is sorted."""

DIRTY_RATIO = 0.5
"""A partition is compacted from this ratio of dirty bytes on."""


@dataclass(frozen=True, slots=True)
class Work:
    """The input of a pass."""

    segments: list[Segment]
    clean_until: int
    tombstones_before: int
    """Tombstones that were first seen at or before this time are removed."""

    @property
    def dirty(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.end_offset > self.clean_until]

    @property
    def overdue(self) -> bool:
        return any(0 < segment.tombstone_since <= self.tombstones_before for segment in self.segments)

    @property
    def is_due(self) -> bool:
        size = sum(segment.size for segment in self.segments)
        return self.overdue or sum(segment.size for segment in self.dirty) > DIRTY_RATIO * size


def work_of(txn: Transaction, topic: Topic, partition: int, now_ms: int) -> Work:
    settled = sealed.settled_segments(txn, topic, partition, now_ms - topic.config.min_compaction_lag_ms)
    before = now_ms - topic.config.delete_retention_ms
    if archived.archived_segments(txn, topic, partition):
        # The archive may hold older records of a deleted key, which would reappear without the tombstone.
        before = 0
    return Work(settled, sealed.clean_until(txn, topic, partition), before)


class Compactor:
    """Compacts one partition. Used under its maintenance lock."""

    def __init__(self, metadata: Metadata, topic: Topic, partition: int, directory: Path, now_ms: int) -> None:
        self._metadata, self._topic, self._partition = metadata, topic, partition
        self._rewriter = Rewriter(metadata, topic, partition, directory)
        self._now = now_ms

    def run(self, map_keys: int = MAP_KEYS) -> Compaction:
        """Run passes until everything that may be compacted is."""
        self._rewriter.tidy()
        first = last = self._work()
        try:
            while last.dirty or last.overdue:
                self._pass(last, map_keys)
                last = self._work()
        except Overtaken:
            last = self._work()
        before, after = first.segments, [part for part in last.segments if part.end_offset <= _end(first.segments)]
        return Compaction(
            self._partition,
            sum(segment.held for segment in before),
            sum(segment.held for segment in after),
            sum(segment.size for segment in before),
            sum(segment.size for segment in after),
        )

    def _work(self) -> Work:
        return self._metadata.read(lambda txn: work_of(txn, self._topic, self._partition, self._now))

    def _pass(self, work: Work, map_keys: int) -> None:
        keys = KeyMap()
        until = work.clean_until
        for segment in work.dirty:
            for batch, _ in self._rewriter.batches(segment):
                known = batch.filter(batch.column("key").is_valid()) if batch.column("key").null_count else batch
                keys.add(known.column("key"), known.column("offset").to_numpy())
            until = segment.end_offset
            if len(keys) >= map_keys:
                break
        mapped = [segment for segment in work.segments if segment.end_offset <= until]
        for group in grouped(mapped, self._topic.config.segment_bytes):
            self._rewriter.rewrite(group, lambda batch, seen: self._choose(batch, seen, keys, work.tombstones_before))
        self._metadata.write(lambda txn: sealed.put_clean_until(txn, self._topic, self._partition, until))

    def _choose(self, batch: pa.RecordBatch, seen: Ints, keys: KeyMap, tombstones_before: int) -> tuple[Flags, Ints]:
        since = self._since(batch, seen)
        return self._stays(batch, since, keys, tombstones_before), since

    def _since(self, batch: pa.RecordBatch, seen: Ints) -> Ints:
        """Return when each record was first seen as a tombstone, which may be this pass."""
        return np.where(tombstones(batch) & (seen == 0), self._now, seen)

    def _stays(self, batch: pa.RecordBatch, since: Ints, keys: KeyMap, tombstones_before: int) -> Flags:
        stays = np.asarray((since == 0) | (since > tombstones_before), np.bool_)
        column = batch.column("key")
        keyed = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        offsets = batch.column("offset").to_numpy()
        last = keys.last_offsets(column.take(pa.array(keyed)) if len(keyed) < len(column) else column)
        stays[keyed[last > offsets[keyed]]] = False
        return stays


def grouped(segments: Sequence[Segment], segment_bytes: int) -> list[list[Segment]]:
    """Group adjacent segments up to the size of one segment, so that small ones do not accumulate."""
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        if groups and size + segment.size <= segment_bytes:
            groups[-1].append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return groups


def _end(segments: Sequence[Segment]) -> int:
    return segments[-1].end_offset if segments else 0
