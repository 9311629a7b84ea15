"""Count the events of a topic by type and version, and compare them with the classes of a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from potok.events.envelope import BadEnvelope
from potok.events.event_type import FORGOTTEN, EventType, EventTypes
from potok.events.kafka_binding import read_record

MOST_KINDS = 10_000
"""Pairs of type and version that are counted one by one; events of further ones are counted together."""
MOST_REASONS = 20


@dataclass(slots=True)
class Found:
    """How many records are alike, and where the first and the last of them are, as partition and offset."""

    records: int
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """The events of one type and version. `problem` says why the program cannot read them, and `path` how it can."""

    type: str
    version: int
    found: Found
    path: str = ""
    problem: str = ""


class TopicCheck:
    """Events counted batch by batch. Memory does not grow with the number of records."""

    def __init__(self, envelope: str = "any") -> None:
        self._envelope = envelope
        self._kinds: dict[tuple[str, int], Found] = {}
        self.records = 0
        self.more: Found | None = None
        """Events of types and versions past the limit."""
        self.bad: dict[str, Found] = {}
        """Records that are not events, by the reason; past the limit, by the empty text."""

    def add(self, batch: pa.RecordBatch, partition: int) -> None:
        """Count the records of a batch of a partition."""
        headers, offsets = batch.column("headers"), batch.column("offset").to_pylist()
        listed = [None] * len(offsets) if headers.null_count == len(offsets) else headers.to_pylist()
        for value, own, offset in zip(batch.column("value").to_pylist(), listed, offsets, strict=True):
            position = (partition, offset)
            try:
                event = read_record(value, own, self._envelope)
                kind = event.type, event.version
            except BadEnvelope as error:
                reason = str(error)
                if reason not in self.bad and len(self.bad) >= MOST_REASONS:
                    reason = ""
                self.bad[reason] = _counted(self.bad.get(reason), position)
                continue
            if kind in self._kinds or len(self._kinds) < MOST_KINDS:
                self._kinds[kind] = _counted(self._kinds.get(kind), position)
            else:
                self.more = _counted(self.more, position)
        self.records += batch.num_rows

    def kinds(self, types: EventTypes | None) -> Iterator[Kind]:
        """Return what was found, by type and version, as a program with these types reads it."""
        known = None if types is None else {type_.name: type_ for type_ in types.types}
        for (name, version), found in sorted(self._kinds.items(), key=lambda item: item[0]):
            if known is None or types is None:
                yield Kind(name, version, found)
            elif name in known:
                yield Kind(name, version, found, *_way(version, known[name]))
            else:
                skipped = types.selects or name == FORGOTTEN
                yield Kind(name, version, found, *(("not read", "") if skipped else ("", "unknown event type")))

    def gaps(self) -> dict[str, list[int]]:
        """Return the versions of each type that are missing between 1 and the newest that was found, up to ten."""
        found: dict[str, set[int]] = {}
        for name, version in self._kinds:
            found.setdefault(name, set()).add(version)
        return {name: _missing(versions) for name, versions in sorted(found.items()) if _missing(versions)}


def _counted(found: Found | None, position: tuple[int, int]) -> Found:
    if found is None:
        return Found(1, position, position)
    found.records, found.last = found.records + 1, position
    return found


def _missing(versions: set[int]) -> list[int]:
    missing: list[int] = []
    for version in range(1, max(versions)):
        if version not in versions:
            missing.append(version)
        if len(missing) == 10 or version > len(versions) + 10:
            break
    return missing


def _way(version: int, type_: EventType) -> tuple[str, str]:
    """Return how a program reads a version, or why it cannot."""
    if version == type_.version:
        return "current", ""
    if version > type_.version:
        return "", f"newer than version {type_.version} of the program"
    known = {at for at, _ in type_.upcasters}
    gap = next((at for at in range(version, type_.version) if at not in known), None)
    if gap is not None:
        return "", f"no upcast from version {gap} to {gap + 1}"
    return f"upcast to {type_.version}", ""
