"""The process that forks Spark's Python workers: pyspark's own, but with everything imported, and silent when the JVM
hangs up.

A worker that waits for its next task while Spark stops would print a traceback on the user's terminal about one time
in eight: over a Unix socket its farewell meets a closed door at once.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon

import potok.engine.job  # noqa: F401 - for its imports: a forked worker is ready at once


def print_unless_hung_up() -> None:
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        traceback.print_exc()


if __name__ == "__main__":
    quiet = SimpleNamespace(print_exc=print_unless_hung_up, format_exc=traceback.format_exc)
    vars(daemon)["traceback"] = quiet
    daemon.manager()
