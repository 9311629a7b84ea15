"""Trying again: with growing pauses, until the time is over."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from potok.retry_policy import MOST_S, Retry, brief_calls, is_brief


class Clock(threading.Event):
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.pauses = 1_000.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        self.pauses.append(timeout)
        return self.is_set()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    module: Any = clock
    monkeypatch.setattr("potok.retry_policy.time", module)
    return clock


def test_pauses_grow_up_to_a_bound_and_are_not_all_the_same(clock: Clock) -> None:
    retry = Retry(600_000, clock)
    while retry.wait():
        pass
    assert max(clock.pauses) <= MOST_S
    assert clock.pauses[0] < 0.06 and clock.pauses[12] > MOST_S / 2
    assert len(set(clock.pauses)) == len(clock.pauses)
    assert 590 < sum(clock.pauses) <= 600


def test_a_caller_sets_its_first_and_its_longest_pause(clock: Clock) -> None:
    retry = Retry(0, clock, first_s=1.0, most_s=4.0)
    assert all(retry.wait() for _ in range(5))
    bounds = (1.0, 2.0, 4.0, 4.0, 4.0)
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(clock.pauses, bounds, strict=True))


def test_zero_is_for_ever(clock: Clock) -> None:
    retry = Retry(0, clock)
    assert all(retry.wait() for _ in range(1_000))
    assert retry.tries == 1_000


def test_it_ends_when_the_caller_gives_up(clock: Clock) -> None:
    retry = Retry(0, clock)
    clock.set()
    assert not retry.wait()


def test_a_server_that_says_when_to_come_back_is_believed(clock: Clock) -> None:
    retry = Retry(600_000, clock)
    assert retry.wait(30.0)
    assert clock.pauses == [30.0]
    assert not retry.wait(3_600.0)


def test_brief_calls_end_with_their_block_and_are_those_of_one_thread() -> None:
    elsewhere: list[bool] = []
    with brief_calls():
        with brief_calls():
            pass
        assert is_brief()
        other = threading.Thread(target=lambda: elsewhere.append(is_brief()))
        other.start()
        other.join()
    assert (is_brief(), elsewhere) == (False, [False])
