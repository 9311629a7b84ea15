"""Which dead letters are done with: ranges of offsets for each partition, in marks that are compared and set."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from potok.dead_letters.read import Fate
from potok.errors import QueryError, StateError
from potok.log.broker import Broker
from potok.log.ranges import Range, Ranges, inside_of, joined, ranges_of, without

_PREFIX = "letters/"
_FORMAT = 1
_HEAD = struct.Struct("<BI")
_RANGE = struct.Struct("<qq")


class LettersChanged(QueryError):
    """Somebody else has replayed or purged letters in the meantime."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'somebody else has replayed or purged letters of "{topic}" meanwhile',
            hint="potok dead-letters list shows those that are left; on Kafka, records may have been appended already",
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """The letters of one partition that are done with. One that was replayed and purged counts as purged."""

    replayed: list[Range] = field(default_factory=list)
    purged: list[Range] = field(default_factory=list)

    def fate(self, offset: int) -> Fate:
        if inside_of(self.purged, offset):
            return Fate.PURGED
        return Fate.REPLAYED if inside_of(self.replayed, offset) else Fate.OPEN

    def open(self, start: int, end: int) -> list[Range]:
        """The offsets from `start` to `end` (not included) that are not done with."""
        return without([(start, end)], joined([*self.replayed, *self.purged]))

    def kept(self, start: int, end: int) -> list[Range]:
        """The same with what was replayed."""
        return without([(start, end)], self.purged)

    def with_replayed(self, offsets: Iterable[int]) -> Settled:
        return Settled(joined([*self.replayed, *ranges_of(offsets)]), self.purged)

    def with_purged(self, offsets: Iterable[int]) -> Settled:
        purged = joined([*self.purged, *ranges_of(offsets)])
        return Settled(without(self.replayed, purged), purged)

    def since(self, start: int) -> Settled:
        """Without what lies before the log's own beginning."""
        before: Ranges = [(-1, start)]
        return Settled(without(self.replayed, before), without(self.purged, before))

    def to_bytes(self) -> bytes:
        ranges = [_RANGE.pack(*part) for part in (*self.replayed, *self.purged)]
        return b"".join((_HEAD.pack(_FORMAT, len(self.replayed)), *ranges))

    @classmethod
    def of_bytes(cls, data: bytes) -> Settled:
        version, replayed = _HEAD.unpack_from(data)
        if version != _FORMAT:
            raise StateError(
                f"what is known of replayed dead letters is in format {version}",
                hint="use the version of potok that wrote it",
            )
        ranges = [(first, end) for first, end in _RANGE.iter_unpack(data[_HEAD.size :])]
        return cls(ranges[:replayed], ranges[replayed:])


@dataclass(frozen=True, slots=True)
class Standing:
    """What was known of all partitions at one time, and the marks that said so."""

    parts: dict[int, Settled]
    metadata_keys: dict[str, bytes]


class LetterMarks:
    """The marks of one topic of dead letters. Their names hold the topic's id: one that was deleted and created again
    begins anew."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self._of_name = f"{_PREFIX}{topic}/"
        self._prefix = f"{self._of_name}{broker.topic_ids([topic])[topic]}/"

    def load(self) -> Standing:
        metadata_keys = self._broker.list_metadata(self._of_name)
        found = {part: metadata_keys.get(self._name(part)) for part in range(self._broker.partitions(self._topic))}
        return Standing(
            {part: Settled.of_bytes(data) if data else Settled() for part, data in found.items()}, metadata_keys
        )

    def changed(
        self, standing: Standing, parts: Mapping[int, Settled]
    ) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
        """The marks to set, and what they must hold until then: what they held at the time."""
        starts = self._broker.start_offsets(self._topic)
        named = {self._name(part): settled.since(starts[part]).to_bytes() for part, settled in parts.items()}
        gone = [name for name in standing.metadata_keys if not name.startswith(self._prefix)]
        return {**dict.fromkeys(gone), **named}, {name: standing.metadata_keys.get(name) for name in named}

    def _name(self, partition: int) -> str:
        return f"{self._prefix}{partition}"
