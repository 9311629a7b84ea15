"""Reading the dead letters of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from potok.log.broker import Broker
from potok.topology.graph import Topology

BLOCK = 1_000
"""So many records are read at a time, from the end of a topic towards its beginning."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was set aside: its bytes, its position, and why.

    `place` is where the letter itself lies in the topic of dead letters, as partition and offset.
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


def dead_letter_topic(query: str) -> str:
    return Topology(query, ()).dead_letter_topic


def read_dead_letters(broker: Broker, topic: str) -> list[DeadLetter]:
    """All letters of a topic, partition after partition."""
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    return [letter for part in sorted(ends) for letter in _read(broker, topic, part, starts[part], ends[part])]


def latest_dead_letters(
    broker: Broker, topic: str, limit: int, wanted: Callable[[DeadLetter], bool] = lambda _: True
) -> list[DeadLetter]:
    """The latest letters that are wanted, the newest last; no more of the topic is read than that takes."""
    found: list[DeadLetter] = []
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    for partition, end in ends.items():
        kept: list[DeadLetter] = []
        while end > starts[partition] and len(kept) < limit:
            start = max(starts[partition], end - BLOCK)
            kept = [letter for letter in _read(broker, topic, partition, start, end) if wanted(letter)] + kept
            end = start
        found += kept
    found.sort(key=lambda letter: (letter.set_aside_at_ms, letter.place))
    return found[-limit:]


def dead_letters_at(broker: Broker, topic: str, offset: int, partition: int | None = None) -> list[DeadLetter]:
    """The letters at an offset of the topic: one for each partition that reaches so far, or of one partition."""
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    reached = [number for number in sorted(ends) if starts[number] <= offset < ends[number]]
    chosen = [number for number in reached if partition is None or number == partition]
    return [letter for number in chosen for letter in _read(broker, topic, number, offset, offset + 1)]


def _read(broker: Broker, topic: str, partition: int, start: int, end: int) -> Iterator[DeadLetter]:
    if start < end:
        for batch in broker.read(topic, partition, start, end):
            yield from (_letter(row, partition) for row in batch.to_pylist())


def _letter(row: Mapping[str, Any], partition: int) -> DeadLetter:
    notes = {header["name"]: header["value"].decode(errors="replace") for header in row["headers"] or ()}
    return DeadLetter(
        notes.get("potok.topic", ""),
        int(notes.get("potok.partition", -1)),
        int(notes.get("potok.offset", -1)),
        notes.get("potok.step", ""),
        notes.get("potok.reason", ""),
        notes.get("potok.error", ""),
        row["key"],
        row["value"],
        row["timestamp"],
        (partition, row["offset"]),
        row["ingested"],
    )
