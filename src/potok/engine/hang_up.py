"""What Spark's Python processes print when the JVM hangs up on them: nothing.

Over a Unix socket their farewell meets a closed door at once, and pyspark would print a traceback about it on the
user's terminal. Nothing else is hidden: an error in a task or in a source goes to the JVM, and is raised there.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType, SimpleNamespace, TracebackType

HANG_UPS = (BrokenPipeError, ConnectionResetError)
DAEMON = "pyspark.daemon"


def hush() -> None:
    """Make this process silent about a hang-up. For processes of a source, which pyspark starts in two ways."""
    sys.excepthook = show_unless_hung_up
    main = sys.modules["__main__"]
    if main.__spec__ is not None and main.__spec__.name == DAEMON:
        hush_daemon(main)


def hush_daemon(daemon: ModuleType) -> None:
    """A forked worker does not end with an uncaught exception: the code of the daemon prints it, and leaves."""
    vars(daemon)["traceback"] = SimpleNamespace(print_exc=print_unless_hung_up, format_exc=traceback.format_exc)


def print_unless_hung_up() -> None:
    if not isinstance(sys.exc_info()[1], HANG_UPS):
        traceback.print_exc()


def show_unless_hung_up(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, HANG_UPS):
        sys.__excepthook__(kind, error, trace)
