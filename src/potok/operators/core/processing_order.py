"""The processing order of the records of a batch: the order of aligned inputs (`runtime/planning/alignment.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from potok.operators.aggregates.accumulators import Rank
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Ints, aligned_by, causes_of
from potok.operators.core.dead_letters import InputPartition

Rows = npt.NDArray[np.intp]

FIRST, NEXT, LAST = 0, 1, 2


class ProcessingOrder:
    """Order changes and records. `first` says for each partition whether its records precede others with the same
    timestamp."""

    def __init__(self, first: Sequence[bool]) -> None:
        # The last element is for NO_INPUT_PARTITION.
        self._first = np.array([*first, False])

    def sort_keys(self, changes: Chunk, records: Chunk) -> tuple[Ints, ...]:
        """Return keys for `lexsort` over changes of a table followed by the records that look it up. At equal times, a
        change without a single causing record comes first, and a record without a position comes last."""
        (input_partitions, offsets), (own_input_partitions, own_offsets) = causes_of(changes).T, causes_of(records).T
        ranks = np.where(self._first[input_partitions] | (input_partitions == NO_INPUT_PARTITION), FIRST, NEXT)
        own_ranks = np.where(
            own_input_partitions == NO_INPUT_PARTITION, LAST, np.where(self._first[own_input_partitions], FIRST, NEXT)
        )
        return (
            np.append(np.arange(len(changes)), np.full(len(records), len(changes))),
            np.append(offsets, own_offsets),
            np.append(input_partitions, own_input_partitions),
            np.append(ranks, own_ranks),
            np.append(aligned_by(changes), aligned_by(records)),
        )

    def one_after_the_other(self, changes: Chunk, records: Chunk) -> list[tuple[Chunk, Chunk]]:
        """Split into runs: changes, and the records that follow them up to the next changes."""
        order = np.lexsort(self.sort_keys(changes, records))
        is_change = order < len(changes)
        begins = np.flatnonzero(is_change & np.append(True, ~is_change[:-1]))
        parts = np.split(order, begins[begins > 0])
        split = [(part[part < len(changes)], part[part >= len(changes)] - len(changes)) for part in parts]
        return [(changes.take(np.sort(some)), records.take(np.sort(met))) for some, met in split]


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
