"""Ctrl-C while Spark is being talked to."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end of the block; then whoever handled them before gets them.

    An exception in the middle of a call to the JVM makes py4j print a traceback, and leaves half a call behind. Spark
    also sets a handler of its own, which cancels the batch at hand: it does not outlive the block. A second signal is
    not held.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        if arrived:
            restore()
            signal.raise_signal(number)
        arrived.append(number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    # A handler that was not set by Python cannot be set again.
    before = {number: handler for number in HELD if (handler := signal.getsignal(number)) is not None}
    for number in before:
        signal.signal(number, hold)
    try:
        yield
    finally:
        restore()
        if arrived:
            signal.raise_signal(arrived[0])
