"""Replay dead letters: append their records to their source topics again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from potok.dead_letters.read import REPLAYED, DeadLetter, dead_letter_of, replays_of
from potok.dead_letters.selection import EVERYTHING, Selection
from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.log.read_positions import read_positions
from potok.operators.core.dead_letters import CUT

Position = tuple[int, int]
"""Partition and offset of a dead letter."""

MADE_INSIDE = "made inside the query"
NO_TOPIC = "topic or partition does not exist"
NO_BYTES = "no longer in the topic, and the dead letter does not hold all bytes"
REFUSED = "rejected by the topic"

AT_ONCE = 500
"""How many records are held in memory at a time."""


@dataclass(slots=True)
class Replay:
    """What was replayed, or would be.

    `appended` counts records by topic and partition, `left` the dead letters that cannot be replayed, by reason.
    Several dead letters may be of one record, which is appended once and resolves all of them.
    """

    dead_letters: int = 0
    appended: Counter[tuple[str, int]] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    @property
    def records(self) -> int:
        return self.appended.total()


class Replayer:
    """Turns dead letters into the records to append. `read` returns the selected open dead letters.

    `done` are the dead letters resolved so far: offsets by partition.
    """

    def __init__(self, broker: Broker, topic: str, read: Callable[[Selection], Iterator[DeadLetter]]) -> None:
        self._broker, self._topic, self._read = broker, topic, read
        self._partitions: dict[str, int] = {}
        self.replay = Replay()
        self.done: dict[int, list[int]] = {}

    def stage(self, selection: Selection, directory: Path | None) -> Iterator[Staged]:
        """Stage the records in the order of their positions; without a directory, only count them."""
        for (topic, partition), positions in sorted(self._choose(selection).items()):
            offsets = sorted(positions)
            for at in range(0, len(offsets), AT_ONCE):
                some = {offset: positions[offset] for offset in offsets[at : at + AT_ONCE]}
                rows = self._within_limits(topic, self._rows(topic, partition, some), some)
                for part, offset in (position for number in rows for position in some[number]):
                    self.done.setdefault(part, []).append(offset)
                    self.replay.dead_letters += 1
                if rows:
                    self.replay.appended[topic, partition] += len(rows)
                    batch = pa.RecordBatch.from_pylist(list(rows.values()), LOG_SCHEMA)
                    if directory is not None:
                        yield self._broker.stage(directory, topic, partition, batch)

    def _choose(self, selection: Selection) -> dict[tuple[str, int], dict[int, list[Position]]]:
        """Return the records to append, by partition and offset, each with all of its open dead letters.

        A record that several steps have set aside goes through all of them again, which resolves its other dead
        letters too, selected or not.
        """
        chosen: dict[tuple[str, int], dict[int, list[Position]]] = {}
        for dead_letter in self._read(selection):
            if not dead_letter.topic:
                self.replay.left[MADE_INSIDE] += 1
            elif not 0 <= dead_letter.partition < self._partitions_of(dead_letter.topic):
                self.replay.left[NO_TOPIC] += 1
            else:
                chosen.setdefault((dead_letter.topic, dead_letter.partition), {}).setdefault(dead_letter.offset, [])
        for dead_letter in self._read(EVERYTHING) if chosen else ():
            positions = chosen.get((dead_letter.topic, dead_letter.partition), {}).get(dead_letter.offset)
            if positions is not None:
                positions.append(dead_letter.position)
        return chosen

    def _partitions_of(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = self._broker.partitions(topic) if self._broker.has_topic(topic) else 0
        return self._partitions[topic]

    def _rows(self, topic: str, partition: int, positions: dict[int, list[Position]]) -> dict[int, dict[str, Any]]:
        """Return the records to append, by their original offsets."""
        dead_letters = self._dead_letters([position for some in positions.values() for position in some])
        batches = read_positions(self._broker, topic, partition, positions)
        originals = {row["offset"]: row for batch in batches for row in batch.to_pylist()}
        rows = {}
        for offset, some in positions.items():
            found = record_of(
                originals.get(offset), [dead_letters[position] for position in some if position in dead_letters]
            )
            if found is None:
                self.replay.left[NO_BYTES] += len(some)
            else:
                rows[offset] = found
        return rows

    def _dead_letters(self, positions: Sequence[Position]) -> dict[Position, DeadLetter]:
        found: dict[Position, DeadLetter] = {}
        for partition in {partition for partition, _ in positions}:
            offsets = [offset for part, offset in positions if part == partition]
            for batch in read_positions(self._broker, self._topic, partition, offsets):
                found |= {(partition, row["offset"]): dead_letter_of(row, partition) for row in batch.to_pylist()}
        return found

    def _within_limits(
        self, topic: str, rows: dict[int, dict[str, Any]], positions: dict[int, list[Position]]
    ) -> dict[int, dict[str, Any]]:
        """Drop the records that the additional header makes too large."""
        if not rows:
            return rows
        refused = self._broker.unfit(topic, pa.RecordBatch.from_pylist(list(rows.values()), LOG_SCHEMA))
        offsets = list(rows)
        for number in refused:
            self.replay.left[REFUSED] += len(positions[offsets[number]])
            del rows[offsets[number]]
        return rows


def record_of(original: dict[str, Any] | None, dead_letters: Sequence[DeadLetter]) -> dict[str, Any] | None:
    """Return the record of some dead letters: from the log if it still has it, or else from a dead letter with all of
    its bytes.

    The log may have another record at that position, if the topic was deleted and created again.
    """
    if original is not None and any(_is_record_of(original, dead_letter) for dead_letter in dead_letters):
        headers = tuple((header["name"], header["value"]) for header in original["headers"] or ())
        return {**original, "headers": _with_replay_count(headers)}
    whole = next((dead_letter for dead_letter in dead_letters if not dead_letter.altered), None)
    if whole is None:
        return None
    record = {"key": whole.key, "value": whole.value, "timestamp": whole.timestamp_ms}
    return {**record, "headers": _with_replay_count(whole.headers)}


def _is_record_of(original: dict[str, Any], dead_letter: DeadLetter) -> bool:
    key, value = original["key"], original["value"]
    if dead_letter.altered == CUT:
        return dead_letter.key in (None, key) and (value or b"").startswith(dead_letter.value or b"")
    return not dead_letter.altered and (dead_letter.key, dead_letter.value) == (key, value)


def _with_replay_count(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, Any]]:
    """Add the header that counts how often the record was replayed."""
    others = [{"name": name, "value": value} for name, value in headers if name != REPLAYED]
    return [*others, {"name": REPLAYED, "value": b"%d" % (replays_of(headers) + 1)}]
