"""The versions of a table's rows, kept as long as the row of an instant may be looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from potok.operators.windows.expiry import NEVER
from potok.operators.windows.windows import time_bytes, time_of
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

Position = tuple[str, int, int]


class Version(NamedTuple):
    """A value of a row from `seen_ms` on: its time or, if it was late, the least time that would not have been."""

    seen_ms: int
    time_ms: int
    position: Position
    value: Any

    @property
    def rank(self) -> tuple[int, int, Position]:
        return self[:3]


def _version(stored: list[Any]) -> Version:
    seen_ms, time_ms, topic, partition, offset, value = stored
    return Version(seen_ms, time_ms, (topic, partition, offset), value)


def as_of(versions: Iterable[Version], at_ms: int) -> Version | None:
    """Return the version of a row at an instant; of those with one rank the last."""
    best: Version | None = None
    for version in versions:
        if version.seen_ms <= at_ms and (best is None or version.rank >= best.rank):
            best = version
    return best


def still_needed(versions: Sequence[Version], past_ms: int) -> list[Version]:
    """Return the versions for lookups of instants after `past_ms`, when all later ones are seen after it too."""
    later = [version for version in versions if version.seen_ms > past_ms]
    last = as_of(versions, past_ms)
    return later if last is None or last.value is None else [last, *later]


class History:
    """A cell with all versions of a row, and an index by the time at which some of them are no longer needed."""

    def __init__(self, table: str, session: StateSession) -> None:
        self.table, self._session = table, session
        self._before: dict[bytes, bytes | None] = {}
        self._rows: dict[bytes, list[Version]] = {}
        self._due: set[bytes] = set()

    @property
    def index(self) -> str:
        return f"{self.table}/by_end"

    @property
    def tables(self) -> list[str]:
        return [self.table, self.index]

    def add(self, versions: Sequence[tuple[bytes, Version]]) -> None:
        self._load([key for key, _ in versions])
        replaced: list[tuple[int, bytes]] = []
        for key, version in versions:
            row = self._rows[key]
            row.append(version)
            if len(row) > 1 or version.value is None:
                replaced.append((version.seen_ms, key))
        if replaced:
            stamps = time_bytes(np.array([seen_ms for seen_ms, _ in replaced], np.int64))
            self._due |= {stamp + key for stamp, (_, key) in zip(stamps, replaced, strict=True)}

    def values(self, keys: Sequence[bytes], times: Sequence[int]) -> list[Any]:
        """Return the value of each key at its instant."""
        self._load(keys)
        found = [as_of(self._rows[key], at_ms) for key, at_ms in zip(keys, times, strict=True)]
        return [None if version is None else version.value for version in found]

    def finish(self, past_ms: int) -> None:
        """Drop the versions that no lookup of an instant after `past_ms` needs, and write the rest."""
        done: list[bytes] = []
        if past_ms > NEVER:
            stop = time_bytes(np.array([past_ms + 1], np.int64))[0]
            done = self._session.keys(self.index, stop)
            self._load([entry[8:] for entry in done])
            self._due = {entry for entry in self._due if entry >= stop}
        changed = []
        for key, row in self._rows.items():
            stored = still_needed(row, past_ms)
            data = dump_state([[v.seen_ms, v.time_ms, *v.position, v.value] for v in stored]) if stored else None
            if data != self._before[key]:
                changed.append((key, data, self._before[key]))
        self._session.write(self.table, changed)
        self._write_index(done)

    def _write_index(self, done: list[bytes]) -> None:
        opened = sorted(self._due)
        before = self._session.read(self.index, opened)
        entries = [(key, b"", old) for key, old in zip(opened, before, strict=True)]
        self._session.write(self.index, [*entries, *((key, None, b"") for key in done)])

    def next_seen(self) -> int | None:
        """Return the least time that, once past, makes some version superfluous; called after the commit."""
        first = self._session.first_key(self.index)
        return None if first is None else time_of(first[:8])

    def _load(self, keys: Iterable[bytes]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self._rows]
        for key, data in zip(missing, self._session.read(self.table, missing), strict=True):
            self._before[key] = data
            self._rows[key] = [] if data is None else [_version(stored) for stored in load_state(data)]
