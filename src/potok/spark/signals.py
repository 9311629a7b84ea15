"""Handle Ctrl-C during calls to Spark."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block, then pass them to their previous handler.

    An exception in the middle of a call to the JVM makes py4j print a traceback, and leaves an incomplete call. Spark
    also installs its own handler, which cancels the running batch: it is removed at the end of the block. A second
    signal is not deferred.
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
