"""A position in the log: per partition, the offset after the last record that was written or read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from potok.errors import LogError

Ends = Mapping[str, Mapping[int, int]]

MOST_PARTITIONS = 1_000
"""How many partitions the text of a position may name."""

_PART = re.compile(r"([A-Za-z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})", re.ASCII)


class BadPosition(LogError):
    """A text that is not a position."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f'"{text:.100}" is not a position',
            hint="send the Potok-Position of a response unchanged, for example orders:0:42,orders:1:17",
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the topics it names; the text is `orders:0:42,orders:1:17`: topic, partition and next offset.

    A table has reached a position once its query has committed all records before it.
    """

    topics: Ends = field(default_factory=dict)

    @classmethod
    def after(cls, ends: Iterable[tuple[str, int, int]]) -> Position:
        """Return the position after these (topic, partition, next offset); the highest of a partition counts."""
        topics: dict[str, dict[int, int]] = {}
        for topic, partition, end in ends:
            parts = topics.setdefault(topic, {})
            parts[partition] = max(end, parts.get(partition, 0))
        return cls(topics)

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the text of one position, or of several separated by commas."""
        parts = [part.strip() for part in text.split(",", MOST_PARTITIONS)]
        if len(parts) > MOST_PARTITIONS:
            raise BadPosition(text)
        found = [_PART.fullmatch(part) for part in parts if part]
        if not found or None in found:
            raise BadPosition(text)
        return cls.after((part[1], int(part[2]), int(part[3])) for part in found if part is not None)

    def __str__(self) -> str:
        return ",".join(
            f"{topic}:{partition}:{end}"
            for topic, parts in sorted(self.topics.items())
            for partition, end in sorted(parts.items())
        )

    def __bool__(self) -> bool:
        return any(self.topics.values())

    def __or__(self, other: Position) -> Position:
        """Return the position that has passed both."""
        return Position.after([*self.ends(), *other.ends()])

    def ends(self) -> Iterable[tuple[str, int, int]]:
        """Return (topic, partition, next offset) of each partition."""
        return ((topic, part, end) for topic, parts in self.topics.items() for part, end in parts.items())

    def within(self, topics: Iterable[str]) -> Position:
        """Return the part of this position in these topics."""
        return Position({topic: self.topics[topic] for topic in topics if topic in self.topics})

    def is_reached(self, offsets: Ends) -> bool:
        """Return whether a reader at these offsets has read everything before this position."""
        return all(offsets.get(topic, {}).get(partition, 0) >= end for topic, partition, end in self.ends())

    def reached(self, offsets: Ends) -> Position:
        """Return how far a reader at these offsets is, in the partitions of this position."""
        return Position.after(
            (topic, part, min(end, offsets.get(topic, {}).get(part, 0))) for topic, part, end in self.ends()
        )
