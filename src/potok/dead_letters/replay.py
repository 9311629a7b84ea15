"""Replaying dead letters: their records are appended once more to where they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from potok.dead_letters.read import REPLAYED, DeadLetter, letter_of, replays_of
from potok.dead_letters.selection import EVERYTHING, Wanted
from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.log.read_positions import read_positions
from potok.operators.core.dead_letters import CUT

Place = tuple[int, int]
"""Partition and offset of a letter."""

MADE_INSIDE = "made inside the query"
NO_TOPIC = "their topic or partition is gone"
NO_BYTES = "gone from their topic, and the letter has not all of their bytes"
REFUSED = "refused by their topic"

AT_ONCE = 500
"""So many records are held in memory at a time."""


@dataclass(slots=True)
class Replay:
    """What was replayed, or would be: `appended` counts records by topic and partition, `left` the letters that cannot
    be replayed, by reason. Several letters may be of one record, which is appended once; all of them are done with."""

    letters: int = 0
    appended: Counter[tuple[str, int]] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    @property
    def records(self) -> int:
        return self.appended.total()


class Replayer:
    """Makes of letters the records to append. `read` gives the open letters that are wanted.

    `done` are the letters that are done with by then: offsets by partition.
    """

    def __init__(self, broker: Broker, topic: str, read: Callable[[Wanted], Iterator[DeadLetter]]) -> None:
        self._broker, self._topic, self._read = broker, topic, read
        self._partitions: dict[str, int] = {}
        self.replay = Replay()
        self.done: dict[int, list[int]] = {}

    def stage(self, wanted: Wanted, directory: Path | None) -> Iterator[Staged]:
        """Stage the records in the order of their own positions; without a directory they are only counted."""
        for (topic, partition), places in sorted(self._choose(wanted).items()):
            offsets = sorted(places)
            for at in range(0, len(offsets), AT_ONCE):
                some = {offset: places[offset] for offset in offsets[at : at + AT_ONCE]}
                rows = self._fitting(topic, self._rows(topic, partition, some), some)
                for part, offset in (place for number in rows for place in some[number]):
                    self.done.setdefault(part, []).append(offset)
                    self.replay.letters += 1
                if rows:
                    self.replay.appended[topic, partition] += len(rows)
                    batch = pa.RecordBatch.from_pylist(list(rows.values()), LOG_SCHEMA)
                    if directory is not None:
                        yield self._broker.stage(directory, topic, partition, batch)

    def _choose(self, wanted: Wanted) -> dict[tuple[str, int], dict[int, list[Place]]]:
        """The records to append, by partition and offset, each with all of its open letters.

        A record that several steps have set aside goes through all of them again, so its other letters are done with
        too, wanted or not.
        """
        chosen: dict[tuple[str, int], dict[int, list[Place]]] = {}
        for letter in self._read(wanted):
            if not letter.topic:
                self.replay.left[MADE_INSIDE] += 1
            elif not 0 <= letter.partition < self._partitions_of(letter.topic):
                self.replay.left[NO_TOPIC] += 1
            else:
                chosen.setdefault((letter.topic, letter.partition), {}).setdefault(letter.offset, [])
        for letter in self._read(EVERYTHING) if chosen else ():
            places = chosen.get((letter.topic, letter.partition), {}).get(letter.offset)
            if places is not None:
                places.append(letter.place)
        return chosen

    def _partitions_of(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = self._broker.partitions(topic) if self._broker.has_topic(topic) else 0
        return self._partitions[topic]

    def _rows(self, topic: str, partition: int, places: dict[int, list[Place]]) -> dict[int, dict[str, Any]]:
        """The records to append, by the offsets they had."""
        letters = self._letters([place for some in places.values() for place in some])
        batches = read_positions(self._broker, topic, partition, places)
        originals = {row["offset"]: row for batch in batches for row in batch.to_pylist()}
        rows = {}
        for offset, some in places.items():
            found = record_of(originals.get(offset), [letters[place] for place in some if place in letters])
            if found is None:
                self.replay.left[NO_BYTES] += len(some)
            else:
                rows[offset] = found
        return rows

    def _letters(self, places: Sequence[Place]) -> dict[Place, DeadLetter]:
        found: dict[Place, DeadLetter] = {}
        for partition in {partition for partition, _ in places}:
            offsets = [offset for part, offset in places if part == partition]
            for batch in read_positions(self._broker, self._topic, partition, offsets):
                found |= {(partition, row["offset"]): letter_of(row, partition) for row in batch.to_pylist()}
        return found

    def _fitting(
        self, topic: str, rows: dict[int, dict[str, Any]], places: dict[int, list[Place]]
    ) -> dict[int, dict[str, Any]]:
        """Without those that have become too large by a header."""
        if not rows:
            return rows
        refused = self._broker.unfit(topic, pa.RecordBatch.from_pylist(list(rows.values()), LOG_SCHEMA))
        offsets = list(rows)
        for number in refused:
            self.replay.left[REFUSED] += len(places[offsets[number]])
            del rows[offsets[number]]
        return rows


def record_of(original: dict[str, Any] | None, letters: Sequence[DeadLetter]) -> dict[str, Any] | None:
    """The record of some letters: as the log still has it, or else from a letter that has all of its bytes.

    A position may mean another record than it did, where a topic was deleted and created again.
    """
    if original is not None and any(_same(original, letter) for letter in letters):
        headers = tuple((header["name"], header["value"]) for header in original["headers"] or ())
        return {**original, "headers": _marked(headers)}
    whole = next((letter for letter in letters if not letter.altered), None)
    if whole is None:
        return None
    record = {"key": whole.key, "value": whole.value, "timestamp": whole.timestamp_ms}
    return {**record, "headers": _marked(whole.headers)}


def _same(original: dict[str, Any], letter: DeadLetter) -> bool:
    key, value = original["key"], original["value"]
    if letter.altered == CUT:
        return letter.key in (None, key) and (value or b"").startswith(letter.value or b"")
    return not letter.altered and (letter.key, letter.value) == (key, value)


def _marked(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, Any]]:
    """The headers with one that says how often the record was replayed."""
    others = [{"name": name, "value": value} for name, value in headers if name != REPLAYED]
    return [*others, {"name": REPLAYED, "value": b"%d" % (replays_of(headers) + 1)}]
