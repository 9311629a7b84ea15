"""Reading the dead letters of a query."""

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
"""So many records are read at a time, from the end of a topic towards its beginning."""

_HUGE = 1 << 63
"""No offset and no time reaches this."""

REPLAYED = "potok.replayed"
"""The header of a record that was replayed, with how often."""


class Fate(StrEnum):
    """What became of a dead letter."""

    OPEN = "open"
    REPLAYED = "replayed"
    PURGED = "purged"


Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was set aside: its bytes, its position, and why.

    `place` is where the letter itself lies in the topic of dead letters, as partition and offset. `headers` are those
    of the record. `altered` says that key and value are not those of the record: `seen` if they are what the step had
    made of it, because it was no longer in the log; `cut` if the letter would have been too large.
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
    place: tuple[int, int] = (-1, -1)
    set_aside_at_ms: int = 0
    headers: Headers = ()
    altered: str = ""

    @property
    def replays(self) -> int:
        """How often the record had been replayed when it was set aside."""
        return replays_of(self.headers)


def replays_of(headers: Headers) -> int:
    return max((_number(value or b"", 0) for name, value in headers if name == REPLAYED), default=0)


def dead_letter_topic(query: str) -> str:
    return Topology(query, ()).dead_letter_topic


def read_dead_letters(broker: Broker, topic: str) -> list[DeadLetter]:
    """All letters of a topic, partition after partition."""
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    spans = {part: (starts[part], ends[part]) for part in sorted(ends)}
    return [letter for part, span in spans.items() for letter in read_letters(broker, topic, part, [span])]


def read_letters(broker: Broker, topic: str, partition: int, ranges: Ranges) -> Iterator[DeadLetter]:
    """The letters of some offsets of a partition."""
    for start, end in ranges:
        for batch in broker.read(topic, partition, start, end):
            yield from (letter_of(row, partition) for row in batch.to_pylist())


def latest_letters(
    broker: Broker, topic: str, ranges: Mapping[int, Ranges], limit: int, wanted: Callable[[DeadLetter], bool]
) -> list[DeadLetter]:
    """The latest letters that are wanted, the newest last; no more of the topic is read than that takes."""
    found: list[DeadLetter] = []
    for partition, parts in ranges.items():
        kept: list[DeadLetter] = []
        for block in _backwards(parts):
            kept = [*filter(wanted, read_letters(broker, topic, partition, [block])), *kept]
            if len(kept) >= limit:
                break
        found += kept
    found.sort(key=lambda letter: (letter.set_aside_at_ms, letter.place))
    return found[-limit:]


def _backwards(ranges: Ranges) -> Iterator[tuple[int, int]]:
    for first, end in reversed(ranges):
        while end > first:
            start = max(first, end - BLOCK)
            yield start, end
            end = start


def letter_of(row: Mapping[str, Any], partition: int) -> DeadLetter:
    """A row of a batch of READ_SCHEMA as a letter."""
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


def _number(data: bytes, otherwise: int) -> int:
    """Anybody may write to a topic."""
    try:
        number = int(data)
    except ValueError:
        return otherwise
    return number if -_HUGE <= number < _HUGE else otherwise
