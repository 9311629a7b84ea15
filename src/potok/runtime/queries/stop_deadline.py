"""Bound the time that a process takes to stop."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

from potok.monitoring.logs import COMMANDS, writes_json
from potok.runtime.queries.errors import StopTimedOut

GRACE_S = 2.0
"""How much longer a process that hangs may take to report that it did not stop in time."""


class StopDeadline:
    """The time for stopping, from the first request on.

    The waiting thread raises `StopTimedOut` once `is_over`. A thread ends the process if nobody
    does, for example because a call into Spark does not return: dying in the middle of a batch is safe.

    Args:
        timeout_ms: The time for stopping; 0 for no limit.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._end: float | None = None
        self._watchdog: threading.Timer | None = None

    def begin(self) -> None:
        """Note the first request to stop."""
        if not self.timeout_ms or self._end is not None:
            return
        self._end = time.monotonic() + self.timeout_ms / 1000
        self._watchdog = threading.Timer(self.timeout_ms / 1000 + GRACE_S, self._die)
        self._watchdog.daemon = True
        self._watchdog.start()

    @property
    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

    def error(self) -> StopTimedOut:
        return StopTimedOut(self.timeout_ms)

    def stopped(self) -> None:
        """Note that the process has stopped in time. If it has not, whatever still hangs is ended."""
        if self._watchdog is not None and not self.is_over:
            self._watchdog.cancel()

    def _die(self) -> None:
        error = self.error()
        with contextlib.suppress(OSError, ValueError):
            if writes_json():
                COMMANDS.error(error.message, extra={"hint": error.hint})
            else:
                print(f"error: {error}", file=sys.stderr, flush=True)
            sys.stdout.flush()
        os._exit(error.exit_code)
