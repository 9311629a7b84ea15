"""Where the output of committed batches ends, so that a position in the inputs of a query can be followed to its
output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from potok.records.position import Ends, Position
from potok.state.entry import decoding

RECENT = 8
"""The last batches are all remembered; of older ones fewer and fewer, at distances that grow with their age."""

MOST_BATCHES = 40
MOST_OFFSETS = 4_000
"""The most offsets in a history: a query with many partitions remembers fewer batches."""


@dataclass(frozen=True, slots=True)
class OutputEnds:
    """A committed batch: the offsets up to which it has read, and the ends of all output so far."""

    batch: int
    read: Ends
    written: Ends

    @property
    def size(self) -> int:
        return sum(len(parts) for ends in (self.read, self.written) for parts in ends.values())


@dataclass(frozen=True, slots=True)
class OutputHistory:
    """Committed batches of a query, the oldest first.

    Output ends only grow, so a batch that was forgotten is replaced by a later one: a reader then waits for more than
    it needs to, never for less.
    """

    batches: tuple[OutputEnds, ...] = ()

    def after(self, batch: int, read: Ends, written: Position) -> OutputHistory:
        """Return the history with another batch, which wrote up to these offsets."""
        before = self.batches[-1].written if self.batches else {}
        ends = (Position(before) | written).topics
        # Batches before a reset read further than this one. One without output says more than its predecessor.
        kept = [
            known
            for known in self.batches
            if known.batch < batch and Position(known.read).is_reached(read) and known.written != ends
        ]
        return OutputHistory(tuple(_thinned([*kept, OutputEnds(batch, read, ends)])))

    def written_by(self, position: Position) -> Position | None:
        """Return the ends of the output of everything before a position; None if that was not read yet."""
        found = next((known for known in self.batches if position.is_reached(known.read)), None)
        return None if found is None else Position(found.written)

    def to_bytes(self) -> bytes:
        rows = [[known.batch, known.read, known.written] for known in self.batches]
        return orjson.dumps(rows, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS)

    @classmethod
    def of_bytes(cls, data: bytes | None) -> OutputHistory:
        if data is None:
            return cls()
        with decoding("the output history of a query"):
            return cls(
                tuple(
                    OutputEnds(int(batch), _ends(read), _ends(written)) for batch, read, written in orjson.loads(data)
                )
            )


def _ends(found: dict[str, dict[str, Any]]) -> dict[str, dict[int, int]]:
    return {topic: {int(part): int(end) for part, end in parts.items()} for topic, parts in found.items()}


def _thinned(batches: Sequence[OutputEnds]) -> list[OutputEnds]:
    """Drop batches between two others that are close to each other for their age; the oldest stays."""
    last, kept = batches[-1].batch, list(batches[-RECENT:])
    older = batches[:-RECENT]
    for index in reversed(range(len(older))):
        age = last - older[index].batch
        if index and kept[0].batch - older[index - 1].batch <= age:
            continue
        kept.insert(0, older[index])
    room, size = MOST_OFFSETS, 0
    for index in reversed(range(len(kept))):
        size += kept[index].size
        if size > room and index < len(kept) - 1:
            return kept[index + 1 :]
    return kept[-MOST_BATCHES:]
