"""When to visit which keys again: lists of keys by time, each list one cell.

A cell for each key and time would cost as much as the windows themselves. So the keys of a batch with neighbouring
times form one list, under a time that is not later than theirs. A key that is visited too early is added again; an
entry is never removed before its time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from potok.operators.core.chunk import Ints
from potok.operators.windows.windows import time_bytes, time_of
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

LISTS = 1_000
"""The approximate maximum number of lists that one batch writes."""


class WakeIndex:
    """What is added in a batch is written once, at its end, with the removal of what was due."""

    def __init__(self, table: str, session: StateSession) -> None:
        self.table, self._session = table, session
        self._over: list[tuple[bytes, bytes | None]] = []
        self._times: list[Ints] = []
        self._keys: list[bytes] = []

    def due(self, watermark_ms: int) -> list[bytes]:
        """Return the keys to visit, each once, by the time of their list."""
        entries = self._session.keys(self.table, time_bytes(np.array([watermark_ms + 1], np.int64))[0])
        if not entries:
            return []
        self._over = list(zip(entries, self._session.read(self.table, entries), strict=True))
        lists = [load_state(data) for _, data in self._over if data is not None]
        return list(dict.fromkeys(key for keys in lists for key in keys))

    def add(self, times: Ints, keys: Sequence[bytes]) -> None:
        """Visit each key when the watermark has reached its time, or earlier."""
        self._times.append(times)
        self._keys += keys

    def flush(self, watermark_ms: int) -> None:
        rows: list[tuple[bytes, bytes | None, bytes | None]] = [(entry, None, data) for entry, data in self._over]
        if self._keys:
            batch = self._session.batch.to_bytes(8, "big")
            rows += [(time + batch, dump_state(keys), None) for time, keys in self._lists(watermark_ms)]
        if rows:
            self._session.write(self.table, rows)
        self._over, self._times, self._keys = [], [], []

    def _lists(self, watermark_ms: int) -> list[tuple[bytes, list[bytes]]]:
        times = np.concatenate(self._times)
        grain = (int(times.max()) - int(times.min())) // LISTS + 1
        early = times - times % grain
        early = np.where(early > watermark_ms, early, times)
        order = np.argsort(early, kind="stable")
        moments, firsts = np.unique(early[order], return_index=True)
        keys = [self._keys[row] for row in order.tolist()]
        ends = [*firsts[1:].tolist(), len(keys)]
        return [
            (time, keys[first:end]) for time, first, end in zip(time_bytes(moments), firsts.tolist(), ends, strict=True)
        ]

    def next_due(self) -> int | None:
        """Return the time of the first list after the commit of this batch."""
        entry = self._session.first_key(self.table)
        return None if entry is None else time_of(entry[:8])
