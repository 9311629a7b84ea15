"""The dead letters of one query: to be looked at, replayed, and purged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from potok.dead_letters.read import DeadLetter, Fate, dead_letter_topic, latest_letters, read_letters
from potok.dead_letters.replay import Replay, Replayer
from potok.dead_letters.resolved import LetterMarks, LettersChanged, Standing
from potok.dead_letters.selection import EVERYTHING, Wanted
from potok.log.broker import Broker
from potok.log.errors import MetadataConflict
from potok.log.ranges import Range, size, within

COUNTED = 1_000
"""Up to so many letters are counted one by one."""

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Purge:
    """How many letters were hidden for good, and how many of all that are hidden were removed from the log."""

    letters: int
    removed: int


class DeadLetters:
    """The dead letters of a query, whether it runs or not.

    >>> box = DeadLetters(broker, "shop")
    >>> box.replay(Wanted(step="parse")).records
    12
    """

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self.query = broker, query
        self.topic = dead_letter_topic(query)
        self._marks = LetterMarks(broker, self.topic) if broker.has_topic(self.topic) else None
        self._counted: tuple[dict[int, list[Range]], int] = ({}, 0)

    def letters(self, wanted: Wanted = EVERYTHING, *, replayed: bool = False) -> Iterator[DeadLetter]:
        """The letters that are wanted, in the order of their places; open ones, or those that were replayed as well."""
        return self._read(self._standing(), wanted, replayed=replayed)

    def latest(self, limit: int, wanted: Wanted = EVERYTHING, *, replayed: bool = False) -> list[DeadLetter]:
        """The latest letters, the newest last; no more of the topic is read than that takes."""
        ranges = self._ranges(self._standing(), wanted, replayed=replayed)
        return latest_letters(self._broker, self.topic, ranges, limit, wanted)

    def fates(self, letters: Sequence[DeadLetter]) -> list[Fate]:
        parts = self._standing().parts
        return [parts[partition].fate(offset) for partition, offset in (letter.place for letter in letters)]

    def count(self) -> int:
        """How many are open. On Kafka, a number over a thousand counts the marks of transactions as well."""
        ranges = self._ranges(self._standing(), EVERYTHING, replayed=False)
        if ranges != self._counted[0]:
            total = sum(map(size, ranges.values()))
            self._counted = (ranges, total if total > COUNTED else self._count(ranges))
        return self._counted[1]

    def replay(self, wanted: Wanted = EVERYTHING, *, dry_run: bool = False) -> Replay:
        """Append the records of open letters to where they came from, and mark the letters as replayed.

        On the embedded log both happen in one transaction. On Kafka the marks are set after the records are there, so
        that a crash in between leaves the letters open, and the next replay appends their records again.
        """
        standing = self._standing()
        replayer = Replayer(self._broker, self.topic, partial(self._read, standing))
        with tempfile.TemporaryDirectory(prefix="potok-replay-") as directory:
            staged = list(replayer.stage(wanted, None if dry_run else Path(directory)))
            done = {part: standing.parts[part].with_replayed(offsets) for part, offsets in replayer.done.items()}
            if done and self._marks is not None and not dry_run:
                try:
                    self._broker.publish(staged, *self._marks.changed(standing, done))
                except MetadataConflict as error:
                    raise LettersChanged(self.topic) from error
        return replayer.replay

    def purge(self, wanted: Wanted = EVERYTHING, *, replayed: bool = False, dry_run: bool = False) -> Purge:
        """Hide letters for good, and remove them from the log as far as it can: of Kafka's, those at its beginning."""
        for _ in range(_ATTEMPTS):
            standing = self._standing()
            chosen: dict[int, list[int]] = {}
            for letter in self._read(standing, wanted, replayed=replayed):
                chosen.setdefault(letter.place[0], []).append(letter.place[1])
            count = sum(map(len, chosen.values()))
            if dry_run or self._marks is None:
                return Purge(count, 0)
            purged = {part: standing.parts[part].with_purged(offsets) for part, offsets in chosen.items()}
            try:
                self._broker.set_metadata(*self._marks.changed(standing, purged))
            except MetadataConflict:
                continue
            return Purge(count, self._remove())
        raise LettersChanged(self.topic)

    def _count(self, ranges: Mapping[int, list[Range]]) -> int:
        reads = (self._broker.read(self.topic, part, *span) for part, spans in ranges.items() for span in spans)
        return sum(len(batch) for read in reads for batch in read)

    def _remove(self) -> int:
        """Also what an earlier purge could not remove, or did not come to."""
        spans = self._spans()
        purged = {part: within(settled.purged, *spans[part]) for part, settled in self._standing().parts.items()}
        return sum(self._broker.remove_records(self.topic, part, ranges) for part, ranges in purged.items() if ranges)

    def _standing(self) -> Standing:
        return Standing({}, {}) if self._marks is None else self._marks.load()

    def _read(self, standing: Standing, wanted: Wanted, *, replayed: bool = False) -> Iterator[DeadLetter]:
        for partition, ranges in self._ranges(standing, wanted, replayed=replayed).items():
            yield from filter(wanted, read_letters(self._broker, self.topic, partition, ranges))

    def _ranges(self, standing: Standing, wanted: Wanted, *, replayed: bool) -> dict[int, list[Range]]:
        """Where letters that may be wanted lie."""
        found = {}
        for part, span in self._spans().items() if standing.parts else ():
            settled = standing.parts[part]
            ranges = settled.kept(*span) if replayed else settled.open(*span)
            found[part] = _at(ranges, wanted, part) if wanted.places else ranges
        return found

    def _spans(self) -> dict[int, Range]:
        starts, ends = self._broker.start_offsets(self.topic), self._broker.end_offsets(self.topic)
        return {part: (starts[part], ends[part]) for part in sorted(ends)}


def _at(ranges: list[Range], wanted: Wanted, partition: int) -> list[Range]:
    offsets = sorted({offset for part, offset in wanted.places if part in (None, partition)})
    return [place for offset in offsets for place in within(ranges, offset, offset + 1)]
