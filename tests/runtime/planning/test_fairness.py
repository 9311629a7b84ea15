"""Who needs little gets it; the others share what is left, and none of them gets more than half."""

from __future__ import annotations

import pytest

from potok.runtime.planning.fairness import LEAST, fair_limits


def test_one_that_is_alone_may_fill_the_batch() -> None:
    assert fair_limits({"one": 10**9}, {"one": 50_000}, 1) == {"one": 50_000}


def test_one_that_is_far_behind_gets_half_of_the_batch_if_there_are_others() -> None:
    limits = fair_limits({"behind": 10**9, "abreast": 100}, {"behind": 50_000, "abreast": 50_000}, 2)
    assert limits == {"behind": 25_000, "abreast": LEAST}


def test_those_that_are_far_behind_share_what_the_others_leave() -> None:
    waiting = {"a": 10**9, "b": 10**9, "c": 10**9, "d": 10_000}
    limits = fair_limits(waiting, dict.fromkeys(waiting, 100_000), 4)
    assert limits["d"] == 10_000
    assert limits["a"] == limits["b"] == limits["c"] == pytest.approx(30_000, abs=1)


def test_one_that_is_slow_gets_as_much_time_as_the_others_and_fewer_records() -> None:
    limits = fair_limits({"slow": 10**9, "fast": 10**9}, {"slow": 10_000, "fast": 1_000_000}, 2)
    assert limits == {"slow": 5_000, "fast": 500_000}


def test_every_query_gets_at_least_a_minimal_batch() -> None:
    waiting = {f"m{n}": 10**6 for n in range(200)}
    assert set(fair_limits(waiting, dict.fromkeys(waiting, 10_000), 200).values()) == {LEAST}


def test_one_whose_records_are_slow_does_not_get_more_than_fill_a_batch() -> None:
    waiting = {f"m{n}": 10**6 for n in range(200)}
    assert set(fair_limits(waiting, dict.fromkeys(waiting, 7), 200).values()) == {7}
