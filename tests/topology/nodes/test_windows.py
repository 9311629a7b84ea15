"""How time is cut into windows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from potok.errors import TopologyError
from potok.topology.nodes.windows import tumbling

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
