"""Where the command `potok` begins. Whoever presses Ctrl-C while it is still being imported sees no stack trace."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    # An exception in the middle of an import may come out as another one, or not at all; and nothing has begun yet.
    signal.signal(signal.SIGINT, _leave)
    from potok.cli.main import app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


def _leave(_: int, __: FrameType | None) -> None:
    os._exit(INTERRUPTED)
