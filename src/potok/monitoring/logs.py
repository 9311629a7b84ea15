"""Structured logs: one JSON object per line, with the query, batch, epoch and step that a message belongs to."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from potok.errors import PotokError
from potok.redact import redact

_context: ContextVar[Mapping[str, Any]] = ContextVar("potok-log-context", default={})  # noqa: B039 - never changed

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def log_context(**fields: Any) -> Iterator[None]:
    """Add fields to all messages of this block, in this thread; None removes one."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


class JsonFormatter(logging.Formatter):
    """Format a message as a JSON object on one line: time, level, logger, message, the fields of the context and those
    given with `extra=`, and the error with its stack trace."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        found |= {name: value for name, value in _context.get().items() if value is not None}
        found |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info and record.exc_info[1] is not None:
            found["error"] = _described(record.exc_info[1])
        return json.dumps(found, default=str, ensure_ascii=False)


def _described(error: BaseException) -> dict[str, str]:
    described = {
        "type": type(error).__name__,
        "message": redact(str(error)),
        "stack": redact("".join(traceback.format_exception(error))),
    }
    if isinstance(error, PotokError):
        described |= {"message": error.message, "hint": error.hint}
    return described


class JsonHandler(logging.StreamHandler[Any]):
    """Writes JSON to stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())


def write_json_logs(level: int = logging.WARNING) -> None:
    """Write all logs of this process as JSON to stderr, in place of the handlers of the root logger."""
    root = logging.getLogger()
    if not writes_json():
        root.handlers[:] = [JsonHandler()]
    root.setLevel(level)
    for logger in (logging.getLogger("potok"), COMMANDS):
        logger.propagate = True
        logger.handlers[:] = []
    logging.captureWarnings(True)
    # What a command tells its user is part of its log, whatever the level of the other messages.
    COMMANDS.setLevel(min(level, logging.INFO))


def writes_json() -> bool:
    return any(isinstance(handler, JsonHandler) for handler in logging.getLogger().handlers)


COMMANDS = logging.getLogger("potok.cli")
"""The messages of commands, if logs are written as JSON."""
