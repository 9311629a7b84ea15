from __future__ import annotations

import pytest

from potok.sinks.http.client import LONGEST_S, _seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 0.0),
        ("3", 3.0),
        ("0120", 120.0),
        ("-1", 0.0),
        ("1e9", 0.0),
        ("\u00b2", 0.0),
        ("nan", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("9" * 400, LONGEST_S),
    ],
)
def test_a_pause_that_a_server_asks_for_is_a_bounded_number_of_seconds(header: str, seconds: float) -> None:
    assert _seconds(header, "") == seconds


@pytest.mark.parametrize(
    ("header", "now", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:30 GMT", 0.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", LONGEST_S),
        ("Wed, 21 Oct 2026 07:28:30 GMT", "yesterday", 0.0),
        ("Wed, 21 Oct 2026 07:28:30 -0000", "Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
    ],
)
def test_a_date_counts_from_the_date_of_the_answer(header: str, now: str, seconds: float) -> None:
    assert _seconds(header, now) == seconds
