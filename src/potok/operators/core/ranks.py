"""The rank of a record among those of its key: by event time and, where that is equal, by position."""

from __future__ import annotations

from potok.operators.aggregates.accumulators import Rank
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk
from potok.operators.core.dead_letters import InputPartition

NOWHERE = ("", -1, 0)
"""The position of a change of a table."""


def ranks_of(chunk: Chunk, input_partitions: list[InputPartition]) -> list[Rank]:
    """Return one rank per record, the same after any replay.

    A change of a table has no position that is meaningful in another batch: of those with one time, the later one
    wins.
    """
    names = [(input_partition.topic, input_partition.partition) for input_partition in input_partitions]
    rows = zip(chunk.timestamp.tolist(), chunk.input_partition.tolist(), chunk.offset.tolist(), strict=True)
    return [
        (time, NOWHERE if input_partition == NO_INPUT_PARTITION else (*names[input_partition], offset))
        for time, input_partition, offset in rows
    ]
