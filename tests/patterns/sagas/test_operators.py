"""The commands of operators to an instance."""

from __future__ import annotations

import pytest

from patterns.sagas.trips import (
    CHARGED,
    FLIGHT,
    HOTEL,
    START,
    CancelFlight,
    CancelHotel,
    FlightRefused,
    Trip,
)
from potok.errors import QueryError
from potok.patterns.sagas.control import action_of
from potok.testing import given


def test_a_running_instance_can_be_aborted() -> None:
    given(Trip, START, FLIGHT).operator("abort").then(sent=[CancelHotel("t1")], state="aborting")


def test_a_second_abort_gives_up_what_is_still_to_be_compensated() -> None:
    (
        given(Trip, START, FLIGHT, HOTEL)
        .operator("abort")
        .then(sent=[CancelHotel("t1")], state="aborting")
        .operator("abort")
        .then(sent=[], state="aborted")
        .after("1 day")
        .then(sent=[], state="aborted")
    )


def test_a_stuck_compensation_can_be_skipped() -> None:
    (
        given(Trip, START, FLIGHT, HOTEL)
        .operator("abort")
        .after("31 min")
        .after("31 min")
        .then(state="stuck", dead_letters=1)
        .operator("skip")
        .then(sent=[CancelFlight("t1")], state="aborting")
    )


def test_a_stuck_step_after_the_pivot_can_be_skipped() -> None:
    given(Trip, START, FLIGHT, HOTEL, CHARGED).after("2 h").after("2 h").operator("skip").then(
        state="completed", dead_letters=1
    )


@pytest.mark.parametrize("action", ["retry", "skip"])
def test_what_is_not_stuck_cannot_be_retried_or_skipped(action: str) -> None:
    given(Trip, START).operator(action).then(sent=[], state="running", dead_letters=1)


def test_an_ended_instance_takes_no_action() -> None:
    given(Trip, START, FlightRefused("t1")).operator("abort").operator("abort").then(state="aborted", dead_letters=1)


def test_an_unknown_action_is_an_error() -> None:
    with pytest.raises(QueryError, match='"pause" is not an action'):
        action_of("trip", "t1", "pause")
