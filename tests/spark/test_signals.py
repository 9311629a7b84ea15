from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from potok.spark.signals import HELD, deferred_signals

arrived: list[int] = []


class Interrupted(Exception):
    """What the handler of these tests raises."""


def interrupt(number: int, _: FrameType | None) -> None:
    arrived.append(number)
    raise Interrupted


def hold_one(first: int, *more: int) -> None:
    with deferred_signals():
        signal.raise_signal(first)
        assert arrived == []
        for number in more:
            signal.raise_signal(number)
            pytest.fail("it was held")


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    arrived.clear()
    before = {number: signal.signal(number, interrupt) for number in HELD}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", HELD)
def test_a_signal_waits_for_the_end_of_the_block(number: signal.Signals) -> None:
    with pytest.raises(Interrupted):
        hold_one(number)
    assert arrived == [number]


def test_the_second_signal_does_not_wait() -> None:
    with pytest.raises(Interrupted):
        hold_one(signal.SIGINT, signal.SIGINT)
    assert arrived[0] == signal.SIGINT


def test_a_handler_set_in_the_block_does_not_outlive_it() -> None:
    with deferred_signals():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is interrupt


def test_only_the_main_thread_holds_signals() -> None:
    seen: list[object] = []

    def look() -> None:
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [interrupt]
