"""Ctrl-C while a program starts: exit without a traceback.

Importing everything before a worker can handle signals takes about a second. The name of the command is checked,
because other programs may want the traceback.
"""

from __future__ import annotations

import sys
from types import TracebackType

WORKER = "worker"


def hush_ctrl_c() -> None:
    """Suppress the traceback of an unhandled Ctrl-C, if the command is `worker`."""
    if WORKER in sys.argv[1:] and sys.excepthook is sys.__excepthook__:
        sys.excepthook = show_unless_ctrl_c


def show_unless_ctrl_c(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


hush_ctrl_c()
