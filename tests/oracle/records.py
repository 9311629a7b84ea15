"""What goes into the oracle, what passes through it, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class Position(NamedTuple):
    """A place in the log."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Input:
    """A record as it lies in the log; its offset is its place in the list."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Item:
    """A record on its way through the steps.

    `stream_time_ms` is that of its source partition when it was read, `sub` distinguishes the outputs of flat maps,
    `origin` is what was read, and `as_read` says that no step has replaced its value; `of_change`, that it is a change
    of a table. One made of two is `headless`;
    `home` holds the key to go back to, while something is looked up under another.
    """

    key: Any
    value: Any
    at_ms: int
    stream_time_ms: int
    position: Position
    origin: Input
    sub: tuple[int, ...] = ()
    as_read: bool = True
    of_change: bool = False
    headless: bool = False
    home: tuple[Any, ...] = ()

    def with_key(self, key: Any) -> Item:
        return replace(self, key=key)

    def with_value(self, value: Any) -> Item:
        return replace(self, value=value, as_read=False)

    def part(self, key: Any, value: Any, index: int) -> Item:
        return replace(self, key=key, value=value, sub=(*self.sub, index), as_read=False)

    @property
    def place(self) -> tuple[Position, tuple[int, ...]]:
        return self.position, self.sub


@dataclass(frozen=True)
class DeadLetter:
    """A record set aside: where it was read, at which step it failed, and why."""

    position: Position
    step: str
    reason: str
    key: bytes | None
    value: bytes | None
    error: str = field(default="", compare=False)


@dataclass(frozen=True)
class Written:
    """A record of an output topic as its reader sees it, with the place of the record that it was made from."""

    key: Any
    value: Any
    position: Position


LOST = Position("the header is lost", -1, -1)
"""Stands for the place of a record that was made of several."""


@dataclass
class Output:
    """What an output topic holds.

    An append stream is fully determined; a changelog, which is made from the changes of a table, only after compaction
    by key.
    """

    changelog: bool
    records: list[Written] = field(default_factory=list)


@dataclass
class Expected:
    """What a topology must have made of its input. Keys of `tables` are the canonical text of the real keys."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    topics: dict[str, Output] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
