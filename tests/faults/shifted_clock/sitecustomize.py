"""Python imports this first where this directory is on its path: its clock is wrong by the seconds that a file says.

The file is read each time, so that the clock can be set while processes run.
"""

import os
import time

_FILE = os.environ.get("FAULTS_CLOCK", "")

_time, _time_ns = time.time, time.time_ns


def _shift() -> int:
    with open(_FILE) as file:
        return int(file.read() or 0)


if _FILE:
    time.time = lambda: _time() + _shift()
    time.time_ns = lambda: _time_ns() + _shift() * 1_000_000_000
