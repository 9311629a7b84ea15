"""Which dead letters are resolved: offset ranges per partition, in metadata keys changed by compare-and-set."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from potok.dead_letters.read import Fate
from potok.errors import QueryError, StateError
from potok.log.broker import Broker
from potok.log.ranges import Range, Ranges, inside_of, joined, ranges_of, without

_PREFIX = "dead_letters/"
_FORMAT = 1
_HEAD = struct.Struct("<BI")
_RANGE = struct.Struct("<qq")


class DeadLettersChanged(QueryError):
    """Dead letters were replayed or purged concurrently."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'dead letters of "{topic}" were replayed or purged by another process at the same time',
            hint="list the rest with potok dead-letters list; on Kafka, records may already have been appended",
        )


@dataclass(frozen=True, slots=True)
class Resolved:
    """The resolved dead letters of one partition. One that was replayed and purged counts as purged."""

    replayed: list[Range] = field(default_factory=list)
    purged: list[Range] = field(default_factory=list)

    def fate(self, offset: int) -> Fate:
        if inside_of(self.purged, offset):
            return Fate.PURGED
        return Fate.REPLAYED if inside_of(self.replayed, offset) else Fate.OPEN

    def open(self, start: int, end: int) -> list[Range]:
        """Return the unresolved offsets from `start` to `end` (exclusive)."""
        return without([(start, end)], joined([*self.replayed, *self.purged]))

    def not_purged(self, start: int, end: int) -> list[Range]:
        """Return the offsets from `start` to `end` (exclusive) that were not purged."""
        return without([(start, end)], self.purged)

    def with_replayed(self, offsets: Iterable[int]) -> Resolved:
        return Resolved(joined([*self.replayed, *ranges_of(offsets)]), self.purged)

    def with_purged(self, offsets: Iterable[int]) -> Resolved:
        purged = joined([*self.purged, *ranges_of(offsets)])
        return Resolved(without(self.replayed, purged), purged)

    def since(self, start: int) -> Resolved:
        """Drop what is before the log start offset."""
        before: Ranges = [(-1, start)]
        return Resolved(without(self.replayed, before), without(self.purged, before))

    def to_bytes(self) -> bytes:
        ranges = [_RANGE.pack(*part) for part in (*self.replayed, *self.purged)]
        return b"".join((_HEAD.pack(_FORMAT, len(self.replayed)), *ranges))

    @classmethod
    def of_bytes(cls, data: bytes) -> Resolved:
        version, replayed = _HEAD.unpack_from(data)
        if version != _FORMAT:
            raise StateError(
                f"the resolved dead letters are stored in the unknown format {version}",
                hint="use the version of potok that wrote it",
            )
        ranges = [(first, end) for first, end in _RANGE.iter_unpack(data[_HEAD.size :])]
        return cls(ranges[:replayed], ranges[replayed:])


@dataclass(frozen=True, slots=True)
class Resolutions:
    """The resolved dead letters of all partitions, and the metadata keys they were read from."""

    parts: dict[int, Resolved]
    metadata_keys: dict[str, bytes]


class ResolutionStore:
    """The metadata keys of one dead-letter topic.

    The keys contain the topic id, so a topic that was deleted and created again starts without resolved dead letters.
    """

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker, self._topic = broker, topic
        self._of_name = f"{_PREFIX}{topic}/"
        self._prefix = f"{self._of_name}{broker.topic_ids([topic])[topic]}/"

    def load(self) -> Resolutions:
        metadata_keys = self._broker.list_metadata(self._of_name)
        found = {part: metadata_keys.get(self._name(part)) for part in range(self._broker.partitions(self._topic))}
        return Resolutions(
            {part: Resolved.of_bytes(data) if data else Resolved() for part, data in found.items()}, metadata_keys
        )

    def changed(
        self, resolutions: Resolutions, parts: Mapping[int, Resolved]
    ) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
        """Return the metadata keys to set and the values they must still have: those that were loaded."""
        starts = self._broker.start_offsets(self._topic)
        named = {self._name(part): resolved.since(starts[part]).to_bytes() for part, resolved in parts.items()}
        gone = [name for name in resolutions.metadata_keys if not name.startswith(self._prefix)]
        return {**dict.fromkeys(gone), **named}, {name: resolutions.metadata_keys.get(name) for name in named}

    def _name(self, partition: int) -> str:
        return f"{self._prefix}{partition}"
