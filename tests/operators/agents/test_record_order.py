"""The order of the records that agents take, and the pieces they come in."""

from __future__ import annotations

import numpy as np

from potok.operators.agents.record_order import PIECE, RecordLocations, Records
from potok.operators.core.chunk import Chunk


def records(input_partition: int, *offsets: int) -> Records:
    numbers = np.array(offsets, np.int64)
    input_partitions = np.full(len(offsets), input_partition, np.int64)
    chunk = Chunk([None] * len(offsets), list(offsets), numbers, numbers, input_partitions, numbers)
    found = Records.of([chunk])
    assert found is not None
    return found


def test_records_of_several_upstreams_come_by_their_positions() -> None:
    places = RecordLocations([records(1, 0, 1, 2), None, records(0, 5), records(1, 1)])
    assert [places[number] for number in range(len(places))] == [(2, 0), (0, 0), (0, 1), (3, 0), (0, 2)]
    runs = [(run.port, run.number, run.start, run.stop) for run in places.runs(0)]
    assert runs == [(2, 0, 0, 1), (0, 1, 0, 2), (3, 3, 0, 1), (0, 4, 2, 3)]


def test_pieces_are_of_one_size_but_for_the_first_records() -> None:
    places = RecordLocations([records(0, *range(2 * PIECE + 40))])
    assert [(run.number, run.stop - run.start) for run in places.runs(32)] == [
        (0, 32),
        (32, PIECE),
        (32 + PIECE, PIECE),
        (32 + 2 * PIECE, 8),
    ]


def test_without_records_there_are_no_positions() -> None:
    assert list(RecordLocations([None]).runs(32)) == []
