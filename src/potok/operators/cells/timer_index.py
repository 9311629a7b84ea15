"""An index of cells by due time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from potok.operators.windows.windows import time_bytes, time_of
from potok.state.session import StateSession


class Timers:
    """Each entry is a time and the key of a cell; entries are cells too, so that a failed attempt leaves none."""

    def __init__(self, table: str, session: StateSession) -> None:
        self.table, self._session = table, session

    def due(self, watermark_ms: int) -> list[tuple[int, bytes]]:
        """Return the entries up to a time, as of before this batch, in time order."""
        stop = time_bytes(np.array([watermark_ms + 1], np.int64))[0]
        return [(time_of(entry[:8]), entry[8:]) for entry in self._session.keys(self.table, stop)]

    def change(self, added: Iterable[tuple[int, bytes]], removed: Iterable[tuple[int, bytes]]) -> None:
        """Add and remove entries. Removed entries are from before this batch; one that is both added and removed
        stays."""
        came, went = set(added), set(removed)
        rows: list[tuple[bytes, bytes | None, bytes | None]] = [(entry, b"", None) for entry in _entries(came - went)]
        rows += [(entry, None, b"") for entry in _entries(went - came)]
        if rows:
            self._session.write(self.table, sorted(rows, key=lambda row: row[0]))

    def next_due(self) -> int | None:
        first = self._session.first_key(self.table)
        return None if first is None else time_of(first[:8])


def _entries(items: set[tuple[int, bytes]]) -> list[bytes]:
    found = list(items)
    times = time_bytes(np.array([time_ms for time_ms, _ in found], np.int64))
    return [time + key for time, (_, key) in zip(times, found, strict=True)]
