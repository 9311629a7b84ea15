"""A single cell is decoded to what the columns of many cells hold."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from potok.operators.cells.cell_codec import FixedCells, ObjectCells, encode_row
from potok.topology.aggregations import AggregatePlan, Slot

LARGE = (1 << 63) - 1


def plan(kind: str, slots: list[Slot], fields: tuple[str, ...] = ()) -> AggregatePlan:
    types = [pa.field(name, slot.type) for name, slot in zip(fields, slots, strict=False)]
    return AggregatePlan(kind, tuple(slots), fields, None, pa.struct(types) if types else slots[0].type)


COUNT = Slot("count", None, pa.int64(), None)
SUM = Slot("sum", None, pa.int64(), None)
LEAST = Slot("min", None, pa.float64(), None)
BEGUN = Slot("sum", None, pa.int64(), 5)
MEAN = plan("avg", [SUM, COUNT])


@pytest.mark.parametrize(
    ("made_of", "slots"),
    [
        (plan("count", [COUNT]), (7,)),
        (plan("sum", [SUM]), (-LARGE,)),
        (plan("min", [LEAST]), (-0.25,)),
        (plan("min", [LEAST]), (math.inf,)),
        (plan("fold", [COUNT, SUM, LEAST, BEGUN], ("n", "total", "least", "started")), (3, LARGE, 1.5, 8)),
        (MEAN, (10, 4)),
        (MEAN, (LARGE, 3)),
    ],
)
@pytest.mark.parametrize("valid", [0b1111, 0b0001, 0b1010, 0])
def test_one_cell_is_decoded_like_many(made_of: AggregatePlan, slots: tuple[Any, ...], valid: int) -> None:
    codec = FixedCells(made_of)
    cell = np.array([(1_000, valid, *slots)], codec.dtype).tobytes()
    times, values = codec.decode([cell, cell])
    assert times == [1_000, 1_000]
    assert values.to_pylist() == [codec.value(cell)] * 2


def test_a_cell_of_another_width_is_refused() -> None:
    codec = FixedCells(MEAN)
    cell = np.zeros(1, codec.dtype).tobytes()
    for data in (cell[:-1], cell + b"\0"):
        with pytest.raises(ValueError, match="bytes"):
            codec.decode([data])
        with pytest.raises(struct.error, match="bytes"):
            codec.value(data)


def test_a_row_of_objects_is_decoded_to_what_its_operator_encoded() -> None:
    codec, cells = ObjectCells("value"), [encode_row(5, {"a": 1}), encode_row(6, None, "more")]
    assert codec.decode(cells) == ([5, 6], [{"a": 1}, None])
    assert [codec.value(cell) for cell in cells] == [{"a": 1}, None]
