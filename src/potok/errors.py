"""Every error that Potok raises on purpose: one tree, each with a hint and, where known, a place.

PotokError
├── TopologyError      the program is wrong; found while it is built
├── SchemaError        a declared type cannot be used, or a value does not fit it
├── LogError           topics, partitions, offsets, segments
├── StateError         fenced cells and their store
├── QueryError         a running topology
└── SetupError         the machine: Java, memory, disk
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PotokError(Exception):
    """What is wrong, where, and what to type instead."""

    def __init__(self, message: str, *, hint: str = "", at: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.at = at

    def __str__(self) -> str:
        lines = [self.message]
        if self.at is not None:
            lines.append(f"  at {self.at}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses take arguments of their own, so an error that crosses a process is rebuilt from its parts.
        return _rebuild, (type(self), self.message, self.hint, self.at)


def _rebuild(kind: type[PotokError], message: str, hint: str, at: Location | None) -> PotokError:
    error = kind.__new__(kind)
    PotokError.__init__(error, message, hint=hint, at=at)
    return error


class TopologyError(PotokError):
    """The topology cannot mean anything; nothing was run."""


class SchemaError(PotokError):
    """A type that cannot be used, or a value that does not fit its type."""


class LogError(PotokError):
    """The log could not do what was asked."""


class StateError(PotokError):
    """The state of a query cannot be read or written."""


class QueryError(PotokError):
    """A query could not start or go on."""


class SetupError(PotokError):
    """The machine lacks something that Potok needs."""
