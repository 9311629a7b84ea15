"""Read, replay and purge the dead letters of one query."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from potok.dead_letters.read import DeadLetter, Fate, dead_letter_topic, latest_dead_letters, read_dead_letter_ranges
from potok.dead_letters.replay import Replay, Replayer
from potok.dead_letters.resolved import DeadLettersChanged, Resolutions, ResolutionStore
from potok.dead_letters.selection import EVERYTHING, Selection
from potok.log.broker import Broker
from potok.log.errors import MetadataConflict
from potok.log.ranges import Range, size, within

COUNTED = 1_000
"""Up to this many dead letters are counted exactly."""

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Purge:
    """How many dead letters were hidden permanently, and how many of all hidden ones were removed from the log."""

    dead_letters: int
    removed: int


class DeadLetters:
    """The dead letters of a query, running or stopped.

    >>> box = DeadLetters(broker, "shop")
    >>> box.replay(Selection(step="parse")).records
    12
    """

    def __init__(self, broker: Broker, query: str) -> None:
        self._broker, self.query = broker, query
        self.topic = dead_letter_topic(query)
        self._store = ResolutionStore(broker, self.topic) if broker.has_topic(self.topic) else None
        self._counted: tuple[dict[int, list[Range]], int] = ({}, 0)

    def read(self, selection: Selection = EVERYTHING, *, replayed: bool = False) -> Iterator[DeadLetter]:
        """Return the selected open dead letters by position; with `replayed`, the replayed ones too."""
        return self._read(self._resolutions(), selection, replayed=replayed)

    def latest(self, limit: int, selection: Selection = EVERYTHING, *, replayed: bool = False) -> list[DeadLetter]:
        """Return the latest dead letters, the newest last, without reading more of the topic than needed."""
        ranges = self._ranges(self._resolutions(), selection, replayed=replayed)
        return latest_dead_letters(self._broker, self.topic, ranges, limit, selection)

    def fates(self, dead_letters: Sequence[DeadLetter]) -> list[Fate]:
        parts = self._resolutions().parts
        return [parts[dead_letter.position[0]].fate(dead_letter.position[1]) for dead_letter in dead_letters]

    def count(self) -> int:
        """Count the open dead letters. On Kafka, a count above a thousand includes transaction markers."""
        ranges = self._ranges(self._resolutions(), EVERYTHING, replayed=False)
        if ranges != self._counted[0]:
            total = sum(map(size, ranges.values()))
            self._counted = (ranges, total if total > COUNTED else self._count(ranges))
        return self._counted[1]

    def replay(self, selection: Selection = EVERYTHING, *, dry_run: bool = False) -> Replay:
        """Append the records of open dead letters to their source topics and mark the dead letters as replayed.

        On the embedded log both happen in one transaction. On Kafka the dead letters are marked after the records are
        appended, so after a crash in between the next replay appends them again.
        """
        resolutions = self._resolutions()
        replayer = Replayer(self._broker, self.topic, partial(self._read, resolutions))
        with tempfile.TemporaryDirectory(prefix="potok-replay-") as directory:
            staged = list(replayer.stage(selection, None if dry_run else Path(directory)))
            done = {part: resolutions.parts[part].with_replayed(offsets) for part, offsets in replayer.done.items()}
            if done and self._store is not None and not dry_run:
                try:
                    self._broker.publish(staged, *self._store.changed(resolutions, done))
                except MetadataConflict as error:
                    raise DeadLettersChanged(self.topic) from error
        return replayer.replay

    def purge(self, selection: Selection = EVERYTHING, *, replayed: bool = False, dry_run: bool = False) -> Purge:
        """Hide dead letters permanently and remove them from the log where possible: on Kafka, only from the start of
        a partition."""
        for _ in range(_ATTEMPTS):
            resolutions = self._resolutions()
            chosen: dict[int, list[int]] = {}
            for dead_letter in self._read(resolutions, selection, replayed=replayed):
                chosen.setdefault(dead_letter.position[0], []).append(dead_letter.position[1])
            count = sum(map(len, chosen.values()))
            if dry_run or self._store is None:
                return Purge(count, 0)
            purged = {part: resolutions.parts[part].with_purged(offsets) for part, offsets in chosen.items()}
            try:
                self._broker.set_metadata(*self._store.changed(resolutions, purged))
            except MetadataConflict:
                continue
            return Purge(count, self._remove())
        raise DeadLettersChanged(self.topic)

    def _count(self, ranges: Mapping[int, list[Range]]) -> int:
        reads = (self._broker.read(self.topic, part, *span) for part, spans in ranges.items() for span in spans)
        return sum(len(batch) for read in reads for batch in read)

    def _remove(self) -> int:
        """Remove purged records, including those that an earlier purge could not remove."""
        spans = self._spans()
        purged = {part: within(resolved.purged, *spans[part]) for part, resolved in self._resolutions().parts.items()}
        return sum(self._broker.remove_records(self.topic, part, ranges) for part, ranges in purged.items() if ranges)

    def _resolutions(self) -> Resolutions:
        return Resolutions({}, {}) if self._store is None else self._store.load()

    def _read(self, resolutions: Resolutions, selection: Selection, *, replayed: bool = False) -> Iterator[DeadLetter]:
        for partition, ranges in self._ranges(resolutions, selection, replayed=replayed).items():
            yield from filter(selection, read_dead_letter_ranges(self._broker, self.topic, partition, ranges))

    def _ranges(self, resolutions: Resolutions, selection: Selection, *, replayed: bool) -> dict[int, list[Range]]:
        """Return the offset ranges that may contain selected dead letters."""
        found = {}
        for part, span in self._spans().items() if resolutions.parts else ():
            resolved = resolutions.parts[part]
            ranges = resolved.not_purged(*span) if replayed else resolved.open(*span)
            found[part] = _at(ranges, selection, part) if selection.positions else ranges
        return found

    def _spans(self) -> dict[int, Range]:
        starts, ends = self._broker.start_offsets(self.topic), self._broker.end_offsets(self.topic)
        return {part: (starts[part], ends[part]) for part in sorted(ends)}


def _at(ranges: list[Range], selection: Selection, partition: int) -> list[Range]:
    offsets = sorted({offset for part, offset in selection.positions if part in (None, partition)})
    return [matching for offset in offsets for matching in within(ranges, offset, offset + 1)]
