"""Every error that Potok raises on purpose: one tree, each with a hint and, where known, a location.

PotokError
├── TopologyError      the program is invalid; found while it is built
├── SchemaError        a declared type cannot be used, or a value does not fit it
├── SqlError           a statement is invalid (potok.sql.errors)
├── LogError           topics, partitions, offsets, segments
├── StateError         fenced cells and their store
├── QueryError         a running topology
├── SinkError          sinks outside the log
└── SetupError         the environment: Java, memory, disk
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from potok.redact import redact

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_COMMANDS, _AS_A_USER = (os.path.join(_PACKAGE, room) + os.sep for room in ("cli", "demo"))


@dataclass(frozen=True, slots=True)
class Location:
    """A position in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @classmethod
    def of_caller(cls) -> Location | None:
        """Return the line of the user's program that called into Potok; None if a command called."""
        frame = sys._getframe(1)
        while frame is not None:
            file = os.path.abspath(frame.f_code.co_filename)
            if file.startswith(_COMMANDS):
                return None
            if not file.startswith(_PACKAGE) or file.startswith(_AS_A_USER):
                return cls(frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return None


class PotokError(Exception):
    """An error: what is wrong, where, and what to write instead.

    `exit_code` is the exit status of a command that fails with it (docs/exit-codes.md).
    """

    exit_code = 1

    passing = False
    """Whether a retry may succeed, for example when a server does not answer."""

    def __init__(self, message: str, *, hint: str = "", at: Location | None = None) -> None:
        self.message, self.hint = writable(redact(message)), writable(redact(hint))
        super().__init__(self.message)
        self.at = at

    def __str__(self) -> str:
        lines = [self.message]
        if self.at is not None:
            lines.append(f"  at {self.at}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses have their own arguments, so an error that crosses processes is rebuilt from its parts.
        return _rebuild, (type(self), self.message, self.hint, self.at, self.passing)


def writable(text: str) -> str:
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _rebuild(kind: type[PotokError], message: str, hint: str, at: Location | None, passing: bool = False) -> PotokError:
    error = kind.__new__(kind)
    PotokError.__init__(error, message, hint=hint, at=at)
    error.passing = passing
    return error


class TopologyError(PotokError):
    """An invalid topology; nothing was run."""


class SchemaError(PotokError):
    """A type that cannot be used, or a value that does not fit its type."""


class LogError(PotokError):
    """An operation on the log that failed."""


class StateError(PotokError):
    """The state of a query cannot be read or written."""


class QueryError(PotokError):
    """A query that could not start or continue."""


class SinkError(PotokError):
    """A sink that cannot accept the output of a query."""


class SetupError(PotokError):
    """Something that Potok needs is missing on this machine."""
