"""Silence Spark's Python processes when the JVM closes their connections.

Over a Unix socket their last message fails immediately, and pyspark would print a traceback on the user's terminal.
Nothing else is hidden: an error in a task is sent to the JVM, and raised there.
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
"""The loggers of Py4J; it also logs at the root."""


def hush_daemon(daemon: ModuleType) -> None:
    """End a forked worker on an uncaught exception: the code of the daemon would print it first."""
    vars(daemon)["traceback"] = SimpleNamespace(print_exc=print_unless_hung_up, format_exc=traceback.format_exc)


def hush_driver() -> None:
    """Silence this process, which talks to the JVM, about the end of the JVM: any further call raises an error.

    It also listens to the JVM for accumulators, in a thread whose errors nobody catches.
    """
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _handle_error  # type: ignore[method-assign, assignment]
    for name in PY4J:
        logging.getLogger(name).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record of Py4J's logs is worth printing: it logs what it raises, such as a lost connection."""
    error = record.exc_info[1] if record.exc_info else None
    lost = isinstance(error, ConnectionError | EOFError) or type(error).__name__ == "Py4JNetworkError"
    return not lost or "py4j" not in Path(record.pathname).parts


def _handle_error(server: BaseServer, request: Any, client: Any) -> None:
    if not isinstance(sys.exc_info()[1], (*SHUTDOWN_MESSAGES, EOFError)):
        BaseServer.handle_error(server, request, client)


def print_unless_hung_up() -> None:
    if not isinstance(sys.exc_info()[1], SHUTDOWN_MESSAGES):
        traceback.print_exc()
