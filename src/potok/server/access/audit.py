"""The audit log: who changed what, when, from where, and with which outcome."""

from __future__ import annotations

import json
import logging
import logging.handlers
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from starlette.types import Message, Scope, Send

from potok.errors import PotokError, SetupError
from potok.permissions import private_opener
from potok.server.access.callers import CALLER

log = logging.getLogger("potok.audit")

READING_POSTS = frozenset({"/query", "/query-stream", "/close-query"})
STATEMENTS = frozenset({"/ksql", "/sql"})
"""Paths whose statements are logged one by one."""

TARGET = "potok.audit.target"
"""Scope key of what a request changes, if the path does not say so."""

T = TypeVar("T")

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "SEARCH"})
_DENIED = (401, 403, 429)

MOST_DENIED = 20
"""Denied requests that are logged per second: they need no token, and must not fill the disk. The next entry counts
the others."""

_LONGEST = 500


class CannotAudit(SetupError):
    """The audit log cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        hint = "name a file in a directory that this user may write"
        super().__init__(f"cannot write the audit log to {path}: {error.strerror}", hint=hint)


class Audit:
    """Writes one JSON object per change to the logger `potok.audit`, and optionally to a file.

    An entry has the fields `at`, `who` (the name of the token), `from` (the address of the client), `action`, `target`,
    `outcome` (`done`, `denied` or `failed`) and `status` or `error`. It contains neither bodies nor the text of
    statements, which may contain secrets.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file: logging.Handler | None = None
        self._left, self._filled_at, self._unlogged = float(MOST_DENIED), monotonic(), 0
        if path is not None:
            try:
                self._file = _PrivateFile(path, encoding="utf-8")
            except OSError as error:
                raise CannotAudit(path, error) from error
            self._file.setFormatter(logging.Formatter("%(message)s"))

    def watch(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that logs the outcome of a request that changes something."""
        if scope["type"] != "http" or scope["method"] in _SAFE or scope["path"] in READING_POSTS:
            return send

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._log_request(scope, message["status"])
            await send(message)

        return watching

    def statement(self, scope: MutableMapping[str, Any], action: str, target: str, work: Callable[[], T]) -> T:
        """Execute a statement that changes something, and log its outcome."""
        try:
            result = work()
        except PotokError as error:
            self._log(scope, action, target, "failed", error=type(error).__name__)
            raise
        self._log(scope, action, target, "done")
        return result

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _log_request(self, scope: Scope, status: int) -> None:
        denied = status in _DENIED
        if scope["path"] in STATEMENTS and not denied:
            return
        outcome = "denied" if denied else "done" if status < 400 else "failed"
        target = scope.get(TARGET, "")
        self._log(scope, f"{scope['method']} {scope['path']}", target, outcome, status=status)

    def _log(self, scope: MutableMapping[str, Any], action: str, target: str, outcome: str, **more: Any) -> None:
        if self._file is None and not log.isEnabledFor(logging.INFO):
            return
        if outcome == "denied":
            if not self._take():
                return
            if self._unlogged:
                more["unlogged"], self._unlogged = self._unlogged, 0
        caller, client = scope.get(CALLER), scope.get("client")
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": getattr(caller, "name", None),
            "from": client[0] if client else None,
            "action": action[:_LONGEST],
            "target": target[:_LONGEST],
            "outcome": outcome,
            **more,
        }
        record = log.makeRecord(log.name, logging.INFO, __file__, 0, json.dumps(entry), (), None)
        if self._file is not None:
            self._file.handle(record)
        if log.isEnabledFor(logging.INFO):
            log.handle(record)

    def _take(self) -> bool:
        """Whether one more denied request is logged; called on the event loop."""
        now = monotonic()
        self._left = min(MOST_DENIED, self._left + (now - self._filled_at) * MOST_DENIED)
        self._filled_at = now
        if self._left < 1:
            self._unlogged += 1
            return False
        self._left -= 1
        return True


class _PrivateFile(logging.handlers.WatchedFileHandler):
    """A file that only its owner can read. It is opened again after a rotation has moved it."""

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=private_opener)
