"""Instants as milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from potok.clock import epoch_ms, parse_epoch_ms


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
    ],
)
def test_a_moment_counts_the_whole_milliseconds_before_it(moment: datetime, expected: int) -> None:
    assert epoch_ms(moment) == expected


def test_a_moment_without_a_zone_is_in_utc() -> None:
    assert epoch_ms(datetime(1970, 1, 2)) == 86_400_000


def test_no_millisecond_is_lost_to_floating_point() -> None:
    start = datetime(2024, 5, 1, tzinfo=UTC)
    moments = [start + timedelta(milliseconds=step) for step in range(2_000)]
    assert [epoch_ms(moment) - epoch_ms(start) for moment in moments] == list(range(2_000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("-5", -5), ("1970-01-02", 86_400_000), ("1970-01-01T00:00:01Z", 1_000), ("1970-01-01 01:00+01:00", 0)],
)
def test_an_instant_is_milliseconds_or_iso_text(text: str, expected: int) -> None:
    assert parse_epoch_ms(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "--5", "1" * 30])
def test_other_text_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_epoch_ms(text)
