"""What is compensated, and in which order."""

from __future__ import annotations

from patterns.sagas.trips import (
    CHARGED,
    FLIGHT,
    HOTEL,
    SENT,
    START,
    BookFlight,
    BookHotel,
    CancelFlight,
    CancelHotel,
    CardRefused,
    ChargeCard,
    FlightCancelled,
    FlightRefused,
    HotelBooked,
    HotelCancelled,
    HotelNotCancelled,
    HotelRefused,
    SendTicket,
    TicketBounced,
    Trip,
    TripStuck,
)
from potok.testing import given


def test_steps_of_a_group_run_together_and_the_next_one_waits_for_all_of_them() -> None:
    (
        given(Trip, START)
        .then(sent=[BookFlight("t1", "Oslo"), BookHotel("t1", "Oslo")], state="running")
        .when(HOTEL)
        .then(sent=[])
        .when(FLIGHT)
        .then(sent=[ChargeCard("t1")])
        .when(CHARGED, SENT)
        .then(sent=[SendTicket("t1", "1A")], state="completed")
    )


def test_completed_steps_are_compensated_in_reverse_order_one_at_a_time() -> None:
    (
        given(Trip, START, HOTEL, FLIGHT, CardRefused("t1"))
        .then(sent=[BookFlight("t1", "Oslo"), BookHotel("t1", "Oslo"), ChargeCard("t1"), CancelFlight("t1")])
        .when(FlightCancelled("t1"))
        .then(sent=[CancelHotel("t1")], state="aborting")
        .when(HotelCancelled("t1"))
        .then(sent=[], state="aborted")
    )


def test_a_step_of_the_group_that_has_not_answered_is_compensated_before_those_that_have() -> None:
    (given(Trip, START, HOTEL).when(FlightRefused("t1")).then(sent=[CancelHotel("t1")], state="aborting"))
    (
        given(Trip, START)
        .when(FlightRefused("t1"))
        .then(sent=[CancelHotel("t1")], state="aborting")
        .when(HOTEL)
        .then(sent=[], state="aborting")
        .when(HotelCancelled("t1"))
        .then(sent=[], state="aborted")
    )


def test_a_step_that_timed_out_is_compensated_too() -> None:
    (
        given(Trip, START, FLIGHT)
        .after("30 min")
        .then(sent=[CancelHotel("t1")], state="aborting")
        .when(HotelCancelled("t1"))
        .then(sent=[CancelFlight("t1")])
    )


def test_a_failed_command_is_sent_again_after_a_pause_and_as_often_as_declared() -> None:
    (
        given(Trip, START, FLIGHT)
        .when(HotelRefused("t1"))
        .then(sent=[], state="running")
        .after("1 min")
        .then(sent=[BookHotel("t1", "Oslo")])
        .when(HotelRefused("t1"))
        .then(sent=[CancelFlight("t1")], state="aborting")
    )


def test_timers_die_with_their_step() -> None:
    (given(Trip, START, FLIGHT, HOTEL, CHARGED, SENT).after("1 day").then(sent=[], state="completed"))
    given(Trip, START, HotelRefused("t1"), HotelBooked("t1")).after("2 min").then(sent=[], state="running")


def test_a_compensation_that_fails_is_repeated_and_then_waits_for_an_operator() -> None:
    story = (
        given(Trip, START, HOTEL, FlightRefused("t1"))
        .when(HotelNotCancelled("t1"))
        .then(sent=[], state="aborting")
        .after("1 min")
        .then(sent=[CancelHotel("t1")])
        .after("30 min")
        .then(sent=[], state="stuck", emitted=[TripStuck("t1")], dead_letters=1)
    )
    story.operator("retry").then(sent=[CancelHotel("t1")], state="aborting").when(HotelCancelled("t1")).then(
        state="aborted"
    )


def test_a_late_end_of_a_compensation_resolves_a_stuck_instance() -> None:
    (
        given(Trip, START, HOTEL, FlightRefused("t1"))
        .after("31 min")
        .after("31 min")
        .then(state="stuck", dead_letters=1)
        .when(HotelCancelled("t1"))
        .then(state="aborted")
    )


def test_after_the_pivot_steps_are_only_retried() -> None:
    (
        given(Trip, START, FLIGHT, HOTEL, CHARGED)
        .when(TicketBounced("t1"))
        .after("1 min")
        .then(sent=[SendTicket("t1", "1A")], state="running")
        .after("1 h")
        .then(sent=[], state="stuck", dead_letters=1)
        .operator("abort")
        .then(state="stuck", dead_letters=1)
        .operator("retry")
        .then(sent=[SendTicket("t1", "1A")], state="running")
        .when(SENT)
        .then(state="completed")
    )


def test_an_answer_resolves_a_step_that_was_stuck() -> None:
    (
        given(Trip, START, FLIGHT, HOTEL, CHARGED)
        .after("1 h")
        .after("2 h")
        .then(state="stuck", dead_letters=1)
        .when(SENT)
        .then(sent=[], state="completed")
    )
