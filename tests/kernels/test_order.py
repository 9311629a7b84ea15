"""Records whose order is not that of their positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.chunks import chunk_of
from potok.kernels.chunk import Chunk, concat, from_wire, in_order, to_wire


def numbered(values: list[str], order: list[int]) -> Chunk:
    return replace(chunk_of(["k"] * len(values), list(values)), order=np.array(order, np.int64))


def test_the_order_goes_before_the_position() -> None:
    assert in_order(numbered(["a", "b", "c"], [2, 0, 1])).value == ["b", "c", "a"]
    assert in_order(replace(numbered(["a", "b"], [1, 0]), order=None)).value == ["a", "b"]


def test_the_order_comes_along_wherever_records_go() -> None:
    chunk = numbered(["a", "b", "c"], [2, 0, 1])
    taken = chunk.take(np.array([2, 0]))
    assert taken.order is not None and taken.order.tolist() == [1, 2]
    assert in_order(from_wire(to_wire(chunk))).value == ["b", "c", "a"]
    assert in_order(concat([taken, chunk.take(np.array([1]))])).value == ["b", "c", "a"]


def test_records_without_an_order_of_their_own_stand_before_those_that_have_one() -> None:
    mixed = concat([numbered(["b", "a"], [2, 1]), chunk_of(["k", "k"], ["x", "y"])])
    assert in_order(mixed).value == ["x", "y", "a", "b"]
