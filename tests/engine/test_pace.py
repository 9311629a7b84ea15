"""How large a batch may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from potok.engine.pace import LEAST, Pace


def test_a_full_batch_that_was_quick_lets_the_next_one_grow() -> None:
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10_000, 500) == 20_000
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10_000, 800) == 12_500


def test_it_grows_fourfold_at_most() -> None:
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10_000, 1) == 40_000


def test_a_batch_that_was_not_full_says_nothing_about_a_full_one() -> None:
    assert Pace(1_000, 1_000_000, limit=10_000).learn(100, 1) == 10_000


def test_a_slow_batch_makes_the_next_one_smaller_by_half_at_most() -> None:
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10_000, 1_250) == 8_000
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10_000, 60_000) == 5_000


def test_a_slow_batch_of_few_records_is_slow_for_other_reasons() -> None:
    assert Pace(1_000, 1_000_000, limit=10_000).learn(10, 60_000) == 10_000


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
def test_it_stays_within_its_bounds(most: int, batches: list[tuple[int, int]]) -> None:
    pace = Pace(1_000, most)
    for records, batch_ms in batches:
        limit = pace.learn(records, batch_ms)
        assert min(LEAST, most) <= limit <= most
