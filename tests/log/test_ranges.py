from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from potok.log.ranges import inside, inside_of, joined, ranges_of, size, within, without

OFFSETS = st.frozensets(st.integers(0, 40))


def test_neighbours_become_ranges() -> None:
    assert ranges_of([5, 1, 2, 2, 9, 3]) == [(1, 4), (5, 6), (9, 10)]
    assert joined([(7, 9), (1, 3), (2, 8), (4, 4)]) == [(1, 9)]


@given(OFFSETS, OFFSETS, st.integers(0, 40), st.integers(0, 40))
def test_ranges_are_sets(one: frozenset[int], two: frozenset[int], start: int, end: int) -> None:
    a, b = ranges_of(one), ranges_of(two)
    assert joined([*a, *b]) == ranges_of(one | two)
    assert without(a, b) == ranges_of(one - two)
    assert within(a, start, end) == ranges_of(one & set(range(start, end)))
    assert size(a) == len(one)
    every = np.arange(42)
    assert inside(a, every).tolist() == [offset in one for offset in every] == [inside_of(a, n) for n in range(42)]
