from __future__ import annotations

import pytest

from potok.server.figures.rates import Rates


def test_nothing_is_known_before_the_second_commit() -> None:
    rates = Rates()
    rates.record(1_000, {"in": 10})

    assert rates.at(1_500) == {}


def test_a_rate_is_taken_from_commit_to_commit_and_not_from_look_to_look() -> None:
    rates = Rates()
    rates.record(1_000, {"in": 0, "out": 0})
    rates.record(2_000, {"in": 3_000, "out": 500})

    for now in (2_000, 2_400, 2_900):
        rates.record(2_000, {"in": 3_000, "out": 500})
        assert rates.at(now) == {"in": 3_000.0, "out": 500.0}


def test_old_commits_leave_the_span() -> None:
    rates = Rates(span_ms=2_000)
    for second in range(10):
        rates.record(second * 1_000, {"in": 1_000 * second if second < 6 else 5_000 + (second - 5) * 100})

    assert rates.at(9_000) == {"in": pytest.approx(100.0)}


def test_the_rate_of_an_idle_query_falls_to_zero() -> None:
    rates = Rates(span_ms=5_000)
    rates.record(0, {"in": 0})
    rates.record(1_000, {"in": 1_000})

    sinking = [rates.at(now)["in"] for now in (1_000, 3_000, 4_000, 6_000, 60_000)]

    assert sinking[:2] == [1_000.0, 1_000.0]
    assert sinking == sorted(sinking, reverse=True)
    assert sinking[-1] == 0.0


def test_the_rate_of_a_restarted_query_is_not_negative() -> None:
    rates = Rates()
    rates.record(1_000, {"in": 50_000})
    rates.record(2_000, {"in": 51_000})
    rates.record(3_000, {"in": 100})
    assert rates.at(3_000) == {}

    rates.record(4_000, {"in": 300})
    assert rates.at(4_000) == {"in": 200.0}


def test_a_step_that_appears_later_counts_from_nothing() -> None:
    rates = Rates()
    rates.record(1_000, {"a": 10})
    rates.record(2_000, {"a": 20, "b": 5})

    assert rates.at(2_000) == {"a": 10.0, "b": 5.0}
