from __future__ import annotations

import pytest

from potok.cli.log.timestamps import UnknownInstant, parse_instant

NOW = 1_800_000_000_000  # 2027-01-15T08:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("today", 1_799_971_200_000),
        ("yesterday", 1_799_884_800_000),
        ("2h ago", NOW - 7_200_000),
        ("2 hours ago", NOW - 7_200_000),
        ("5m", NOW - 300_000),
        ("2027-01-15", 1_799_971_200_000),
        ("2027-01-15T08:00", NOW),
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T10:00+02:00", NOW),
        ("1700000000000", 1_700_000_000_000),
    ],
)
def test_an_instant_is_read_as_people_type_it(text: str, expected: int) -> None:
    assert parse_instant(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "12", "2027-13-01", "3 bananas ago"])
def test_other_words_are_refused_with_a_suggestion(text: str) -> None:
    with pytest.raises(UnknownInstant, match="yesterday"):
        parse_instant(text, NOW)
