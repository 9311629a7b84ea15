from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.errors import LogError
from potok.log.queues.queue_state import MOST_RUNS, Kind, QueueCounts, QueueState, Run


def taken(state: QueueState, now: int, most: int, end: int = 100, due: int = 50) -> list[int]:
    return [offset for run in state.claim(now, most, 0, end, due) for offset in range(run.first, run.end)]


def test_records_are_taken_once_and_in_order() -> None:
    state = QueueState(5)
    assert taken(state, 0, 3) == [5, 6, 7]
    assert taken(state, 0, 3, end=9) == [8]
    assert taken(state, 0, 3, end=9) == []


def test_what_is_done_is_forgotten_from_the_front() -> None:
    state = QueueState(0)
    taken(state, 0, 10)
    state.finish([3, 1])
    assert (state.low, len(state.runs)) == (0, 5)
    state.finish([0])
    assert state.low == 2
    state.finish([2, *range(4, 10)])
    assert (state.low, state.next, state.runs) == (10, 10, [])


def test_what_was_not_settled_in_time_is_taken_again_and_counted() -> None:
    state = QueueState(0)
    state.claim(0, 2, 0, 2, due_ms=50)
    assert state.claim(49, 5, 0, 2, 99) == []
    assert state.claim(50, 5, 0, 2, 99) == [Run(0, 2, Kind.OUT, 2, 99)]


def test_what_is_put_back_waits_until_it_is_due() -> None:
    state = QueueState(0)
    taken(state, 0, 3)
    state.put_back(1, claimed=1, deliveries=1, due_ms=20)
    assert state.counts(19, 3) == QueueCounts(out=2, waiting=1)
    assert state.counts(20, 4) == QueueCounts(ready=2, out=2)
    assert taken(state, 20, 3, end=3) == [1]


def test_a_claim_that_is_over_can_neither_put_back_nor_extend() -> None:
    state = QueueState(0)
    state.claim(0, 1, 0, 1, due_ms=10)
    state.claim(10, 1, 0, 1, due_ms=30)
    state.put_back(0, claimed=1, deliveries=1, due_ms=11)
    state.extend(0, claimed=1, due_ms=1000)
    assert state.runs == [Run(0, 1, Kind.OUT, 2, 30)]
    state.finish([0])
    assert state.low == 1


def test_what_is_taken_ahead_is_not_counted_and_never_what_is_due_once_more() -> None:
    state = QueueState(0)
    assert state.claim(0, 1, 2, 10, 5) == [Run(0, 1, Kind.OUT, 1, 5), Run(1, 3, Kind.OUT, 0, 5)]
    assert state.claim(5, 1, 2, 10, 9) == [Run(0, 1, Kind.OUT, 2, 9), Run(3, 5, Kind.OUT, 0, 9)]


def test_the_log_that_starts_later_takes_what_lay_before() -> None:
    state = QueueState(0)
    taken(state, 0, 6)
    state.finish([4])
    state.truncate(3)
    assert (state.low, state.next) == (3, 6)
    state.truncate(4)
    assert (state.low, state.next) == (5, 6)
    state.truncate(9)
    assert (state.low, state.next, state.runs) == (9, 9, [])


def test_many_exceptions_hold_up_what_was_never_taken() -> None:
    state = QueueState(0)
    taken(state, 0, 2 * MOST_RUNS, end=10 * MOST_RUNS)
    state.finish(range(1, 2 * MOST_RUNS, 2))
    assert len(state.runs) >= MOST_RUNS
    assert taken(state, 0, 5, end=10 * MOST_RUNS) == []
    state.finish(range(MOST_RUNS + 2))
    assert taken(state, 0, 5, end=10 * MOST_RUNS) == [2 * MOST_RUNS + n for n in range(5)]


def test_a_long_stretch_that_is_done_costs_as_little_as_a_short_one() -> None:
    state = QueueState(0)
    taken(state, 0, 1_000_000, end=1_000_000)
    state.finish(range(1, 1_000_000))
    assert len(state.to_bytes()) < 100


def test_a_format_that_is_not_known_is_refused() -> None:
    with pytest.raises(LogError, match="format 9"):
        QueueState.of_bytes(b"\x09" + QueueState(0).to_bytes()[1:])


class Model:
    """One entry for each record, as plain as can be."""

    def __init__(self) -> None:
        self.fate: dict[int, tuple[str, int, int]] = {}
        self.next = 0

    def claim(self, now: int, most: int, ahead: int, end: int, due: int) -> list[int]:
        found = [n for n in sorted(self.fate) if self.fate[n][0] != "done" and self.fate[n][2] <= now][:most]
        for offset in found:
            self.fate[offset] = ("out", self.fate[offset][1] + 1, due)
        for count, deliveries in ((most - len(found), 1), (ahead, 0)):
            while count > 0 and self.next < end:
                self.fate[self.next] = ("out", deliveries, due)
                found.append(self.next)
                self.next += 1
                count -= 1
        return found


OFFSETS = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("claim"), st.integers(0, 8), st.integers(0, 4), OFFSETS, st.integers(1, 9)),
    st.tuples(st.just("finish"), st.lists(OFFSETS, max_size=6)),
    st.tuples(st.just("put_back"), OFFSETS, st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("extend"), OFFSETS, st.integers(0, 3), st.integers(0, 9)),
)


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=30))
def test_runs_mean_what_one_entry_for_each_record_would_mean(steps: list[tuple]) -> None:
    state, model = QueueState(0), Model()
    for now, (step, *given_) in enumerate(steps):
        HANDLE[step](state, model, now, *given_)
        state = QueueState.of_bytes(state.to_bytes())
        spread = {
            n: (run.kind.name.lower(), run.deliveries, run.due_ms)
            for run in state.runs
            for n in range(run.first, run.end)
        }
        expected = {n: fate for n, fate in model.fate.items() if n >= state.low}
        assert {n: ("done", 0, 0) if fate[0] == "done" else fate for n, fate in expected.items()} == spread
        assert all(fate[0] == "done" for n, fate in model.fate.items() if n < state.low)
        assert (state.next, sorted(spread)) == (model.next, list(range(state.low, state.next)))


def _claim(state: QueueState, model: Model, now: int, most: int, ahead: int, end: int, time: int) -> None:
    runs = state.claim(now, most, ahead, end, now + time)
    found = model.claim(now, most, ahead, end, now + time)
    assert [n for run in runs for n in range(run.first, run.end)] == found


def _finish(state: QueueState, model: Model, now: int, offsets: list[int]) -> None:
    state.finish(offsets)
    model.fate |= {offset: ("done", 0, 0) for offset in offsets if offset in model.fate}


def _put_back(state: QueueState, model: Model, now: int, offset: int, claimed: int, delay: int) -> None:
    state.put_back(offset, claimed, claimed + 1, now + delay)
    if model.fate.get(offset, ("", 0, 0))[:2] == ("out", claimed):
        model.fate[offset] = ("waiting", claimed + 1, now + delay)


def _extend(state: QueueState, model: Model, now: int, offset: int, claimed: int, delay: int) -> None:
    state.extend(offset, claimed, now + delay)
    if model.fate.get(offset, ("", 0, 0))[:2] == ("out", claimed):
        model.fate[offset] = ("out", claimed, now + delay)


HANDLE: dict[str, Callable[..., None]] = {
    "claim": _claim,
    "finish": _finish,
    "put_back": _put_back,
    "extend": _extend,
}
