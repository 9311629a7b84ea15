"""Read the dead letters of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from potok.log.broker import Broker
from potok.log.ranges import Ranges
from potok.operators.core.dead_letters import Note, split_headers
from potok.topology.graph import Topology

BLOCK = 1_000
"""How many records are read at a time, from the end of a topic towards its start."""

_HUGE = 1 << 63
"""Larger than any offset or timestamp."""

REPLAYED = "potok.replayed"
"""The header of a replayed record: how often it was replayed."""


class Fate(StrEnum):
    """What happened to a dead letter."""

    OPEN = "open"
    REPLAYED = "replayed"
    PURGED = "purged"


Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was set aside: its bytes, its position, and the reason.

    `position` is that of the dead letter itself in the dead-letter topic, as partition and offset. `headers` are
    those of the record. `altered` says that key and value are not those of the record: `seen` if they are what the
    step had made of it, because the record was no longer in the log; `cut` if they were truncated.
    """

    topic: str
    partition: int
    offset: int
    step: str
    reason: str
    error: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    position: tuple[int, int] = (-1, -1)
    set_aside_at_ms: int = 0
    headers: Headers = ()
    altered: str = ""

    @property
    def replays(self) -> int:
        """How often the record had been replayed before it was set aside."""
        return replays_of(self.headers)


def replays_of(headers: Headers) -> int:
    return max((_number(value or b"", 0) for name, value in headers if name == REPLAYED), default=0)


def dead_letter_topic(query: str) -> str:
    return Topology(query, ()).dead_letter_topic


def read_dead_letters(broker: Broker, topic: str) -> list[DeadLetter]:
    """Return all dead letters of a topic, partition by partition."""
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    spans = {part: (starts[part], ends[part]) for part in sorted(ends)}
    return [
        dead_letter
        for part, span in spans.items()
        for dead_letter in read_dead_letter_ranges(broker, topic, part, [span])
    ]


def read_dead_letter_ranges(broker: Broker, topic: str, partition: int, ranges: Ranges) -> Iterator[DeadLetter]:
    """Return the dead letters in some offset ranges of a partition."""
    for start, end in ranges:
        for batch in broker.read(topic, partition, start, end):
            yield from (dead_letter_of(row, partition) for row in batch.to_pylist())


def latest_dead_letters(
    broker: Broker, topic: str, ranges: Mapping[int, Ranges], limit: int, selected: Callable[[DeadLetter], bool]
) -> list[DeadLetter]:
    """Return the latest selected dead letters, the newest last, without reading more of the topic than needed."""
    found: list[DeadLetter] = []
    for partition, parts in ranges.items():
        matching: list[DeadLetter] = []
        for block in _backwards(parts):
            matching = [*filter(selected, read_dead_letter_ranges(broker, topic, partition, [block])), *matching]
            if len(matching) >= limit:
                break
        found += matching
    found.sort(key=lambda dead_letter: (dead_letter.set_aside_at_ms, dead_letter.position))
    return found[-limit:]


def _backwards(ranges: Ranges) -> Iterator[tuple[int, int]]:
    for first, end in reversed(ranges):
        while end > first:
            start = max(first, end - BLOCK)
            yield start, end
            end = start


def dead_letter_of(row: Mapping[str, Any], partition: int) -> DeadLetter:
    """Convert a row of a batch of READ_SCHEMA into a dead letter."""
    own, notes = split_headers(row["headers"])
    noted = {header["name"]: header["value"] or b"" for header in notes}

    def text(note: str) -> str:
        return noted.get(note, b"").decode(errors="replace")

    return DeadLetter(
        text(Note.TOPIC),
        _number(noted.get(Note.PARTITION, b""), -1),
        _number(noted.get(Note.OFFSET, b""), -1),
        text(Note.STEP),
        text(Note.REASON),
        text(Note.ERROR),
        row["key"],
        row["value"],
        _number(noted.get(Note.TIME, b""), row["timestamp"]),
        (partition, row["offset"]),
        _number(noted.get(Note.AT, b""), row["ingested"]),
        tuple((header["name"], header["value"]) for header in own),
        text(Note.BYTES),
    )


def _number(data: bytes, default: int) -> int:
    """Parse defensively: anybody may write to the topic."""
    try:
        number = int(data)
    except ValueError:
        return default
    return number if -_HUGE <= number < _HUGE else default
