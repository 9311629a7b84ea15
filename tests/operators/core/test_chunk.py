"""Chunks: columns of records, and their way through a shuffle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import chunk_of, items
from potok.operators.core.chunk import concat, dump_objects, from_wire, in_order, load_objects, to_wire
from potok.records.value import Value

HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1}, None, {"a": 3}]),
        [{"a": (1, 2)}, None, {1, 2}],
        [Decimal("1.5"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), Value({"n": Value({"x": 1})})],
    ],
)
def test_a_chunk_travels_unchanged_with_the_bytes_that_its_values_mean(values: Any) -> None:
    chunk = chunk_of(pa.array(["a", None, "c"]), values, [3, 1, 2])
    chunk.before, chunk.expired = ["x", None, "z"], True
    chunk.headers = pa.array([[("h", b"1")], None, []], HEADERS)
    back = from_wire(to_wire(chunk))
    assert (items(back.key), items(back.value), back.before) == (items(chunk.key), items(values), chunk.before)
    assert back.timestamp.tolist() == [3, 1, 2] and back.offset.tolist() == [0, 1, 2]
    assert back.expired and back.headers is not None and back.headers.equals(chunk.headers)
    assert back.raw_key is None and back.intact and back.raw_value.equals(chunk.raw_value)
    assert from_wire(to_wire(chunk.with_value(values))).raw_value is None


def test_objects_keep_their_kinds() -> None:
    objects = [(1, [2]), {3}, frozenset({4}), b"5", 1 << 80, float("inf"), True]
    assert load_objects(dump_objects(objects)) == objects


def test_rows_are_taken_with_all_that_belongs_to_them() -> None:
    chunk = chunk_of(["a", "b", "c"], pa.array([1, 2, 3]))
    chunk.headers = pa.array([None, [("h", b"1")], None], HEADERS)
    part = chunk.take(np.array([2, 1]))
    assert (part.key, items(part.value), part.offset.tolist()) == (["c", "b"], [3, 2], [2, 1])
    assert part.raw_value is not None and part.raw_value.to_pylist() == [b"3", b"2"]
    assert part.headers is not None and part.headers[1].as_py() == [{"name": "h", "value": b"1"}]


def test_a_mask_that_keeps_everything_copies_nothing() -> None:
    chunk = chunk_of(["a"], [1])
    assert chunk.where(np.array([True])) is chunk


def test_a_new_value_is_no_longer_the_bytes_that_came_in() -> None:
    chunk = chunk_of(["a"], [1])
    assert not chunk.with_value([2]).intact
    assert chunk.with_key(["b"]).intact


def test_chunks_are_joined_typed_or_dynamic() -> None:
    typed = concat([chunk_of(["a"], pa.array([1])), chunk_of(["b"], pa.array([2]))])
    assert isinstance(typed.value, pa.Array)
    mixed = concat([chunk_of(["a"], pa.array([1])), chunk_of(["b"], ["two"])])
    assert mixed.value == [1, "two"]


def test_chunks_of_two_types_are_joined_as_dynamic_ones() -> None:
    mixed = concat([chunk_of(["a"], pa.array([1])), chunk_of(["b"], pa.array(["two"]))])
    assert items(mixed.value) == [1, "two"]


def test_headers_are_joined_also_where_some_have_none() -> None:
    one, two = chunk_of(["a"], [1]), chunk_of(["b"], [2])
    two.headers = pa.array([[("h", b"1")]], HEADERS)
    joined = concat([one, two])
    assert joined.headers is not None and joined.headers.to_pylist()[0] is None


def test_records_are_ordered_by_position_and_equal_positions_stay_as_they_came() -> None:
    chunk = concat([chunk_of(["b0", "b1"], [1, 2], input_partition=1), chunk_of(["a5", "a6"], [3, 4], first_offset=5)])
    chunk = concat([chunk, chunk_of(["b0 again"], [5], input_partition=1)])
    assert in_order(chunk).key == ["a5", "a6", "b0", "b0 again", "b1"]


def test_what_a_function_made_comes_through_as_it_is() -> None:
    made = [{"n": np.float64(1.5), "b": bytearray(b"x"), "t": (1, {2})}]
    chunk = from_wire(to_wire(chunk_of(["k"], [0], [1]).with_value(made)))
    assert chunk.value == made
    assert type(chunk.value[0]["n"]) is np.float64
