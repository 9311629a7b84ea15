"""The entry point of the `potok` command. Ctrl-C during imports prints no stack trace."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    # An exception raised during an import may be replaced or swallowed. Nothing has started, so exit immediately.
    signal.signal(signal.SIGINT, _leave)
    from potok.cli.main import app

    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


def _leave(_: int, __: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
