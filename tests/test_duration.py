"""Durations in all their spellings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from potok.duration import NotADuration, hours, show_ms, to_ms, to_seconds
from potok.errors import Location, TopologyError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 minutes", 300_000),
        ("1h 30m", 5_400_000),
        ("1 hour, 1 second", 3_601_000),
        ("1.5 s", 1_500),
        (".5s", 500),
        ("2 WEEKS", 1_209_600_000),
        (hours(1), 3_600_000),
        (timedelta(milliseconds=7), 7),
        (0.25, 250),
        (3, 3_000),
    ],
)
def test_a_duration_is_text_a_timedelta_or_seconds(text: Any, expected: int) -> None:
    assert to_ms(text) == expected


@pytest.mark.parametrize(
    "given", ["", "soon", "5", "1.2.3 s", ". s", "5 minutes!", None, [5], float("nan"), float("inf")]
)
def test_an_invalid_duration_is_reported_with_its_position_and_a_hint(given: Any) -> None:
    with pytest.raises(NotADuration) as caught:
        to_ms(given)
    assert "5 minutes" in caught.value.hint
    assert caught.value.at is not None
    assert caught.value.at.file == __file__


def test_an_unknown_unit_is_reported_with_its_position() -> None:
    with pytest.raises(TopologyError, match='"fortnights" is not a unit of time') as caught:
        to_ms("2 fortnights")
    assert isinstance(caught.value.at, Location)


@pytest.mark.parametrize("given", ["2 fortnights", "9" * 400 + " hours", "9" * 15 + " days", 1e300, 10**400])
def test_an_unknown_unit_and_a_duration_that_no_clock_can_count_are_not_durations(given: Any) -> None:
    with pytest.raises(NotADuration):
        to_ms(given)


def test_the_shortest_spelling_is_shown() -> None:
    assert [show_ms(ms) for ms in (0, 1, 1_000, 90_000, 3_600_000, 86_400_000)] == [
        "0ms",
        "1ms",
        "1s",
        "90s",
        "1h",
        "1d",
    ]


@pytest.mark.parametrize(("given", "expected"), [(0.0001, 0.0001), (3, 3.0), ("5 minutes", 300.0), (hours(1), 3600.0)])
def test_seconds_keep_fractions_of_a_millisecond(given: Any, expected: float) -> None:
    assert to_seconds(given) == expected
