"""What Spark's Python processes print when the JVM hangs up on them: nothing.

Over a Unix socket their farewell meets a closed door at once, and pyspark would print a traceback about it on the
user's terminal. Nothing else is hidden: an error in a task goes to the JVM, and is raised there.
"""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from socketserver import BaseServer
from types import ModuleType, SimpleNamespace
from typing import Any

SHUTDOWN_MESSAGES = (BrokenPipeError, ConnectionResetError)
PY4J = ("", "py4j.clientserver", "py4j.java_gateway")
"""Where Py4J logs; some of it at the root."""


def hush_daemon(daemon: ModuleType) -> None:
    """A forked worker does not end with an uncaught exception: the code of the daemon prints it, and leaves."""
    vars(daemon)["traceback"] = SimpleNamespace(print_exc=print_unless_hung_up, format_exc=traceback.format_exc)


def hush_driver() -> None:
    """Make this process, which talks to the JVM, silent about its end: whoever asks it for something hears of it.

    It listens to the JVM for accumulators too, in a thread that nobody else hears.
    """
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _handle_error  # type: ignore[method-assign, assignment]
    for name in PY4J:
        logging.getLogger(name).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Py4J logs what it raises; of a lost connection it makes an error of its own."""
    error = record.exc_info[1] if record.exc_info else None
    lost = isinstance(error, ConnectionError | EOFError) or type(error).__name__ == "Py4JNetworkError"
    return not lost or "py4j" not in Path(record.pathname).parts


def _handle_error(server: BaseServer, request: Any, client: Any) -> None:
    if not isinstance(sys.exc_info()[1], (*SHUTDOWN_MESSAGES, EOFError)):
        BaseServer.handle_error(server, request, client)


def print_unless_hung_up() -> None:
    if not isinstance(sys.exc_info()[1], SHUTDOWN_MESSAGES):
        traceback.print_exc()
