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


def rate(fixed_ms: float, per_record_ms: float) -> float:
    """Records a second where it comes to rest, if batches cost this much each and this much for each record."""
    pace = Pace(1_000, 1_000_000)
    for _ in range(30):
        records = pace.limit
        pace.learn(records, int(fixed_ms + per_record_ms * records))
    return pace.limit / (fixed_ms + per_record_ms * pace.limit) * 1000


def test_batches_that_cost_much_each_stay_large_enough_to_be_worth_it() -> None:
    assert rate(fixed_ms=950, per_record_ms=0.02) > 0.6 * 50_000
    assert rate(fixed_ms=2_000, per_record_ms=0.02) > 0.6 * 50_000


def test_batches_that_cost_little_each_take_as_long_as_they_should() -> None:
    pace = Pace(1_000, 1_000_000)
    for _ in range(30):
        records = pace.limit
        pace.learn(records, int(100 + 0.02 * records))
    assert 40_000 <= pace.limit <= 50_000


def test_it_never_grows_beyond_what_was_tried_because_a_small_batch_was_slow() -> None:
    pace = Pace(1_000, 1_000_000, limit=100_000)
    pace.learn(100_000, 1_100)
    assert pace.learn(50_000, 9_000) <= 100_000


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
def test_it_stays_within_its_bounds(most: int, batches: list[tuple[int, int]]) -> None:
    pace = Pace(1_000, most)
    for records, batch_ms in batches:
        limit = pace.learn(records, batch_ms)
        assert min(LEAST, most) <= limit <= most
