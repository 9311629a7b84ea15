"""Points at which a test kills or pauses the process, to prove that nothing is lost or duplicated."""

from __future__ import annotations

import os
import signal

VARIABLE = "POTOK_FAILPOINT"
SIGNAL = "POTOK_FAILPOINT_SIGNAL"

_armed, _, _nth = os.environ.get(VARIABLE, "").partition(":")
_remaining = int(_nth or "1")
_signal = signal.Signals[os.environ.get(SIGNAL, "SIGKILL")]


def failpoint(name: str) -> None:
    """Kill this process when `POTOK_FAILPOINT` is `name`, or at the Nth call when it is `name:N`.

    `POTOK_FAILPOINT_SIGNAL=SIGSTOP` pauses it instead, until SIGCONT.
    """
    global _remaining
    if name != _armed:
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), _signal)
