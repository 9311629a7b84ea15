"""Places where a test may kill the process, to prove that a restart loses nothing."""

from __future__ import annotations

import os
import signal

VARIABLE = "POTOK_FAILPOINT"

_armed, _, _nth = os.environ.get(VARIABLE, "").partition(":")
_remaining = int(_nth or "1")


def failpoint(name: str) -> None:
    """Kill this process when `POTOK_FAILPOINT` is `name`, or at the Nth call when it is `name:N`."""
    global _remaining
    if name != _armed:
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
