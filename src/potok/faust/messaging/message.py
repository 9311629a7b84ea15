"""Where a record was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class TP(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Message:
    """The position of a record and its event time, in seconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: float
    key: Any
    value: Any
    headers: dict[str, bytes]

    @property
    def tp(self) -> TP:
        return TP(self.topic, self.partition)
