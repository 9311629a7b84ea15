"""Remove single records from a partition by rewriting their segments."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa

from potok.log.embedded import catalog
from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.maintenance.key_map import Ints
from potok.log.embedded.maintenance.rewrite import Flags, Overtaken, Rewriter
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.ranges import Ranges, inside, within

_EVER = 1 << 62


class Remover:
    """Removes records of one partition, unless a query may still read them. Used under its maintenance lock."""

    def __init__(self, metadata: Metadata, topic: Topic, partition: int, directory: Path) -> None:
        self._metadata, self._topic, self._partition, self._directory = metadata, topic, partition, directory
        self._rewriter = Rewriter(metadata, topic, partition, directory)

    def run(self, ranges: Ranges) -> int:
        """Remove records; return how many were removed."""
        self._rewriter.tidy()
        self._seal(ranges)
        removed = 0
        try:
            for segment in self._metadata.read(self._settled):
                removed += self._remove(segment, ranges)
        except Overtaken:
            pass  # a segment that changed meanwhile is left for the next time
        self._metadata.write(self._drop_empty)
        return removed

    def _seal(self, ranges: Ranges) -> None:
        state = self._metadata.read(lambda txn: catalog.get_state(txn, self._topic, self._partition))
        if within(ranges, state.segment_base, state.end_offset):
            sealed.seal(self._metadata, self._directory, self._topic, self._partition)

    def _settled(self, txn: Transaction) -> list[Segment]:
        return sealed.settled_segments(txn, self._topic, self._partition, _EVER)

    def _remove(self, segment: Segment, ranges: Ranges) -> int:
        doomed = within(ranges, segment.base_offset, segment.end_offset)
        if not self._holds_any(segment, doomed):
            return 0
        removed = 0

        def choose(batch: pa.RecordBatch, seen: Ints) -> tuple[Flags, Ints]:
            nonlocal removed
            stays = ~inside(doomed, batch.column("offset").to_numpy())
            removed += int(np.count_nonzero(~stays))
            return stays, seen

        self._rewriter.rewrite([segment], choose)
        return removed

    def _holds_any(self, segment: Segment, doomed: Ranges) -> bool:
        """Return whether there is something to remove: reading a segment is cheaper than rewriting it in vain."""
        if not doomed or segment.records < 0:
            return bool(doomed)
        batches = (batch.column("offset").to_numpy() for batch, _ in self._rewriter.batches(segment))
        return any(bool(inside(doomed, offsets).any()) for offsets in batches)

    def _drop_empty(self, txn: Transaction) -> None:
        """Move the start of the partition past empty segments; the archive continues without a gap."""
        archive = archived.archived_segments(txn, self._topic, self._partition)
        if not archive and catalog.find_topic(txn, self._topic.name) == self._topic:
            gone = list(takewhile(lambda segment: segment.held == 0, self._settled(txn)))
            if gone:
                sealed.replace_segments(txn, self._topic, self._partition, gone, None)
