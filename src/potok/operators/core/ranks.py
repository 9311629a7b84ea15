"""The rank of a record among those of its key: by event time and, where that is equal, by position."""

from __future__ import annotations

from potok.operators.aggregates.accumulators import Rank
from potok.operators.core.chunk import NO_LANE, Chunk
from potok.operators.core.dead_letters import Lane

NOWHERE = ("", -1, 0)
"""The position of a change of a table."""


def ranks_of(chunk: Chunk, lanes: list[Lane]) -> list[Rank]:
    """One rank per record, the same after any replay.

    A change of a table has no place that means anything in another batch: of those with one time, the later counts.
    """
    names = [(lane.topic, lane.partition) for lane in lanes]
    rows = zip(chunk.timestamp.tolist(), chunk.lane.tolist(), chunk.offset.tolist(), strict=True)
    return [(time, NOWHERE if lane == NO_LANE else (*names[lane], offset)) for time, lane, offset in rows]
