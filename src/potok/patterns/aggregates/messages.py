"""Commands and results as records: what a client writes, and what it reads back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from potok.records.log_record import LogRecord

COMMAND_ID, EXPECTED, CORRELATION_ID, REPEATED = "command-id", "expected-version", "correlation-id", "repeated"
"""Headers of commands and results."""
WRITER, COMMAND = "potok-writer", "command"
"""Headers of events that an aggregate wrote: its query and name, and the command that they follow from."""

ANY, NONE, EXISTS = "any", "none", "exists"

Status = Literal["accepted", "rejected", "wrong_version", "invalid", "failed"]


def commands_topic(aggregate: str) -> str:
    return f"{aggregate}-commands"


def results_topic(aggregate: str) -> str:
    return f"{aggregate}-results"


def writer_of(query: str, aggregate: str) -> bytes:
    """Return what marks the events of an aggregate as its own."""
    return f"{query}/{aggregate}".encode()


@dataclass(slots=True)
class Result:
    """What became of a command. `version` is that of the aggregate afterwards, `sequence` of an event that after it."""

    command_id: str
    command: str
    aggregate_id: str
    status: Status
    version: int
    events: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None
    error: str | None = None
    at: int = 0

    def to_bytes(self) -> bytes:
        return orjson.dumps(self)


def read_result(value: bytes) -> Result:
    """Return the result in a record of the results topic."""
    return Result(**orjson.loads(value))


def command_record(
    aggregate_id: str,
    command: str,
    data: Mapping[str, Any],
    *,
    command_id: str | None = None,
    expected_version: str | int = ANY,
    correlation: str | None = None,
) -> LogRecord:
    """Return the record of a command, for the topic `commands_topic(aggregate)`."""
    headers = [(EXPECTED, str(expected_version).encode())] if expected_version != ANY else []
    headers += [(COMMAND_ID, command_id.encode())] if command_id is not None else []
    headers += [(CORRELATION_ID, correlation.encode())] if correlation is not None else []
    value = orjson.dumps({"command": command, "data": dict(data)})
    return LogRecord(aggregate_id.encode(), value, headers=tuple(headers))


def expectation(text: str) -> str | int:
    """Return the version that a command expects; raise ValueError if the text is none."""
    if text in (ANY, NONE, EXISTS):
        return text
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    raise ValueError(f'"{text:.100}" is not an expected version; write {ANY}, {NONE}, {EXISTS}, or a number')


def fits(version: int, expected: str | int) -> bool:
    """Whether an aggregate of this version is as the command expects it."""
    if isinstance(expected, int):
        return version == expected
    return expected == ANY or (version == 0) == (expected == NONE)
