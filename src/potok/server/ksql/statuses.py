"""Status of the statements in the command log, for `/status`; each is read and parsed once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from potok.statements.catalog.catalog_state import parsed_of
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.database import Database
from potok.statements.messages import command_id_of, done_message

MOST_NEW = 1_000
"""After this many statements all are read again, because known ones may have been removed."""


@dataclass(frozen=True, slots=True)
class _Known:
    message: str
    query_id: str


class Statuses:
    """Every command was executed before its sender got a response; the latest of an id counts. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database, self._commands = database, CommandLog(database.broker)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._read, self._started, self._left = 0, 0, -1

    def all(self) -> dict[str, dict[str, Any]]:
        known, running = self._current(), self._database.catalog_state().queries
        return {command_id: _status(one, running) for command_id, one in known.items()}

    def find(self, command_id: str) -> dict[str, Any] | None:
        known = self._current().get(command_id)
        return None if known is None else _status(known, self._database.catalog_state().queries)

    def _current(self) -> dict[str, _Known]:
        """The statuses after reading the log; immutable."""
        with self._lock:
            count, left = self._commands.count, self._commands.left
            if (count, left) == (self._read, self._left):
                return self._known
            same = left == self._left and count - self._started <= MOST_NEW
            new = self._commands.since(self._read) if same else None
            if new is None:
                new, self._known, self._started = self._commands.all(), {}, count
            self._known = {**self._known, **dict(map(_entry, new))}
            self._read, self._left = max([count, *(command.sequence + 1 for command in new[-1:])]), left
            return self._known


def _entry(command: Command) -> tuple[str, _Known]:
    statement = parsed_of(command).statement
    return command_id_of(statement), _Known(done_message(statement, command.query_id), command.query_id)


def _status(known: _Known, running: Any) -> dict[str, Any]:
    over = bool(known.query_id) and known.query_id not in running
    return {
        "status": "TERMINATED" if over else "SUCCESS",
        "message": "Query terminated" if over else known.message,
        "queryId": known.query_id or None,
    }
