"""How time is cut into windows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from potok.errors import Location, TopologyError
from potok.topology.nodes.windows import hopping, session, sliding, tumbling

HOUR, MINUTE, DAY = 3_600_000, 60_000, 86_400_000


def test_a_window_stays_readable_for_a_week_unless_said_otherwise() -> None:
    window = tumbling(timedelta(hours=1))
    assert (window.size_ms, window.grace_ms, window.retention_ms) == (HOUR, 0, 7 * DAY)


def test_a_window_is_kept_at_least_as_long_as_it_accepts_records() -> None:
    assert tumbling("1 hour", grace="5 minutes", retention=0).retention_ms == 5 * MINUTE
    assert tumbling("1 hour", retention=0).grace("5 minutes").retention_ms == 5 * MINUTE


def test_grace_can_be_given_afterwards() -> None:
    assert tumbling("1 hour").grace("5 minutes") == tumbling("1 hour", grace="5 minutes")


@pytest.mark.parametrize("size", [0, -5])
def test_a_window_without_a_size_is_refused(size: int) -> None:
    with pytest.raises(TopologyError, match="size"):
        tumbling(size)


def test_a_negative_grace_is_refused() -> None:
    with pytest.raises(TopologyError, match="negative"):
        tumbling(5, grace=-1)


def test_it_reads_well() -> None:
    assert str(tumbling("1 hour", grace="5 minutes")) == "tumbling 1h, grace 5m"


def test_a_session_has_a_gap_after_the_last_record_or_a_timeout_after_the_first() -> None:
    assert session("30 minutes") == session(gap="30 minutes")
    assert session(timeout="30 minutes", from_first=True).gap_ms == 30 * MINUTE
    with pytest.raises(TopologyError, match="not both"):
        session("1 hour", timeout="2 hours")
    with pytest.raises(TopologyError, match="from the first record") as caught:
        session(timeout="2 hours")
    assert "from_first=True" in caught.value.hint
    with pytest.raises(TopologyError, match="needs a gap or a timeout"):
        session()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tumbling(0),
        lambda: tumbling("1 fortnight"),
        lambda: tumbling("soon"),
        lambda: tumbling(5, grace=-1),
        lambda: tumbling(5).grace(-1),
        lambda: hopping(5, 10),
        lambda: sliding(-1),
        lambda: session(),
        lambda: session("1 h", timeout="1 h"),
        lambda: session(timeout="1 h"),
    ],
)
def test_an_error_in_a_window_is_reported_with_its_line(make: Callable[[], Any]) -> None:
    with pytest.raises(TopologyError) as caught:
        make()
    assert caught.value.at == Location(__file__, make.__code__.co_firstlineno)


def test_the_hint_shows_the_kind_of_window_that_was_meant() -> None:
    with pytest.raises(TopologyError) as caught:
        sliding(0)
    assert caught.value.hint == "write sliding(seconds(30))"
