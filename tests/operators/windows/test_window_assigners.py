"""Which windows the records of one key form."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.operators.windows.expiry import NEVER
from potok.operators.windows.window_assigners import Event, in_time_order, window_assigner_of
from potok.topology.nodes.windows import Session, Sliding

Times = tuple[int, int, list[int]]


def event(time: int, text: str = "", *, reach: int | None = None, offset: int = 0) -> Event:
    """`o` opens, `c` closes; without either it opens, if nobody says otherwise."""
    return Event(time, ("t", 0, offset), time if reach is None else reach, None, "-" not in text, "c" in text)


def frames(window: Session | Sliding, events: list[Event], closed_at: int = NEVER) -> list[Times]:
    found = window_assigner_of(window).frames(in_time_order(events), closed_at)
    return [(frame.start, frame.end, [event.time for event in frame.events]) for frame in found]


def test_a_session_lasts_while_records_arrive_within_the_gap() -> None:
    events = [event(time) for time in (0, 5, 10, 16)]
    assert frames(Session(5), events) == [(0, 10, [0, 5, 10]), (16, 16, [16])]


def test_a_session_from_the_first_record_ends_when_its_time_is_over() -> None:
    events = [event(time) for time in (0, 3, 9, 10, 19)]
    assert frames(Session(10, from_first=True), events) == [(0, 9, [0, 3, 9]), (10, 19, [10, 19])]


@pytest.mark.parametrize("from_first", [True, False])
def test_what_comes_before_a_record_that_opens_is_in_no_session(from_first: bool) -> None:
    events = [event(0, "-"), event(1), event(2, "-"), event(30, "-")]
    assert frames(Session(5, from_first), events) == [(1, 2, [1, 2])]


def test_a_record_that_opens_inside_a_session_belongs_to_it() -> None:
    assert frames(Session(5), [event(0), event(3), event(4, "-")]) == [(0, 4, [0, 3, 4])]


def test_a_record_that_closes_is_the_last_of_its_session() -> None:
    events = [event(0), event(1, "c"), event(2), event(3, "-")]
    assert frames(Session(5), events) == [(0, 1, [0, 1]), (2, 3, [2, 3])]


def test_a_session_can_be_opened_and_closed_by_one_record() -> None:
    assert frames(Session(5), [event(0, "c"), event(1, "-"), event(2, "-c")]) == [(0, 0, [0])]


def test_what_has_the_time_of_the_closing_record_belongs_to_its_session() -> None:
    events = [event(0), event(1, "c", offset=1), event(1, offset=2), event(1, "c", offset=3), event(2)]
    assert frames(Session(5), events) == [(0, 1, [0, 1, 1, 1]), (2, 2, [2])]


def test_a_sliding_window_ends_at_each_record_and_one_starts_right_after_it() -> None:
    events = [event(time) for time in (10, 13)]
    assert frames(Sliding(5), events) == [(5, 10, [10]), (8, 13, [10, 13]), (11, 16, [13])]


def test_both_ends_belong_to_a_sliding_window() -> None:
    events = [event(time) for time in (10, 15, 21)]
    assert frames(Sliding(5), events) == [
        (5, 10, [10]),
        (10, 15, [10, 15]),
        (11, 16, [15]),
        (16, 21, [21]),
    ]


def test_records_of_one_instant_share_their_windows() -> None:
    events = [event(10, offset=1), event(10, offset=2)]
    assert frames(Sliding(5), events) == [(5, 10, [10, 10])]


def test_a_record_counts_in_the_sliding_windows_that_were_open_for_it() -> None:
    events = [event(10), event(15), event(12, reach=15)]
    assert frames(Sliding(5), events) == [
        (5, 10, [10]),
        (10, 15, [10, 12, 15]),
        (11, 16, [12, 15]),
        (13, 18, [15]),
    ]


def test_sliding_windows_that_have_closed_are_not_found_again() -> None:
    events = [event(time) for time in (10, 13)]
    assert frames(Sliding(5, grace_ms=2), events, closed_at=16) == [(11, 16, [13])]


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.booleans()), max_size=25), st.booleans(), st.randoms())
def test_sessions_do_not_depend_on_the_order_in_which_records_came(
    rows: list[tuple[int, bool, bool]], from_first: bool, random: Random
) -> None:
    events = [Event(at, ("t", 0, n), at, n, opens, closes) for n, (at, opens, closes) in enumerate(rows)]
    shuffled = random.sample(events, len(events))
    window = Session(7, from_first)
    assert frames(window, events) == frames(window, shuffled)


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.booleans()), max_size=25), st.booleans())
def test_no_instant_is_in_two_sessions(rows: list[tuple[int, bool, bool]], from_first: bool) -> None:
    events = [Event(at, ("t", 0, n), at, n, opens, closes) for n, (at, opens, closes) in enumerate(rows)]
    found = frames(Session(7, from_first), events)
    assert all(one[1] < other[0] for one, other in pairwise(found))


@given(st.lists(st.integers(0, 40), max_size=15), st.integers(1, 9))
def test_sliding_windows_are_those_that_the_definition_names(times: list[int], length: int) -> None:
    events = [event(time, offset=n) for n, time in enumerate(times)]
    starts = {time - length for time in times} | {time + 1 for time in times}
    expected = [(s, s + length, [t for t in sorted(times) if s <= t <= s + length]) for s in sorted(starts)]
    assert frames(Sliding(length), events) == [row for row in expected if row[2]]
