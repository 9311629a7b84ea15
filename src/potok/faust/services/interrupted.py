"""Ctrl-C while a program begins: it ends, and does not show where it was.

All that is imported before a worker can listen to signals takes about a second. The name of the command is looked at,
since a program that does something else may want to see where it was.
"""

from __future__ import annotations

import sys
from types import TracebackType

WORKER = "worker"


def hush_ctrl_c() -> None:
    """Say nothing of Ctrl-C that nobody has taken, if the program is told to be a worker."""
    if WORKER in sys.argv[1:] and sys.excepthook is sys.__excepthook__:
        sys.excepthook = show_unless_ctrl_c


def show_unless_ctrl_c(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


hush_ctrl_c()
