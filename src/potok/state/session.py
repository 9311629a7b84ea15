"""The reads and writes of one attempt on one shard: reads first, then all writes in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from potok.state.cell import decode_cell, decode_fixed, encode_cell, encode_cells, encode_fixed, values_before, with_key
from potok.state.fence import Fence
from potok.state.store import (
    LONGEST_PREFIX,
    Store,
    after_prefix,
    carried_key,
    original_key,
    stored_key,
    stored_keys,
    stored_stop,
)

PAGE = 50_000

TOMBSTONES = "/deleted"


class StateSession:
    """Collects the writes of all steps of a stage on one shard and commits them together."""

    def __init__(self, store: Store, fence: Fence) -> None:
        self.store = store
        self._fence = fence
        self._writes: list[tuple[str, list[tuple[bytes, bytes]]]] = []
        self._removals: list[tuple[str, list[bytes]]] = []
        self._deleted: Counter[str] = Counter()

    @property
    def batch(self) -> int:
        """The number of the batch; no other committed batch has it."""
        return self._fence.attempt.batch

    def read(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values before this attempt."""
        return values_before(self.store.get_many(table, stored_keys(keys)), self._fence, table)

    def read_fixed(
        self, table: str, keys: Sequence[bytes], payload: np.dtype[Any]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the values before this attempt as one array, and which of them exist."""
        cells = self.store.get_many(table, stored_keys(keys))
        return decode_fixed(cells, payload, self._fence, table)

    def range_fixed(
        self, table: str, start: bytes, stop: bytes, payload: np.dtype[Any]
    ) -> tuple[list[bytes], npt.NDArray[Any]]:
        """Return the keys with start <= key < stop that had a value before this attempt, and their values as one
        array."""
        rows = list(self._rows(table, start, stop))
        values, exists = decode_fixed([data for _, data in rows], payload, self._fence, table)
        keys = [original_key(key, decode_cell(data, table, key)) if carried_key(key) else key for key, data in rows]
        return [key for key, there in zip(keys, exists, strict=True) if there], values[exists]

    def _rows(self, table: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield stored keys and raw cells, in pages, to keep transactions short."""
        while True:
            rows = self.store.page(table, start, stop, limit=PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            start = rows[-1][0] + b"\x00"

    def keys(self, table: str, stop: bytes) -> list[bytes]:
        """Return the keys below `stop` that had a value before this attempt."""
        return [key for key, cell in self.store.scan(table, b"", stop) if cell.before(self._fence) is not None]

    def rows_below(self, table: str, prefixes: Sequence[bytes]) -> list[list[tuple[bytes, bytes]]]:
        """Return, for each prefix, the keys that start with it and their values before this attempt."""
        return self.rows_between(table, [(prefix, after_prefix(prefix)) for prefix in prefixes])

    def rows_between(self, table: str, ranges: Sequence[tuple[bytes, bytes | None]]) -> list[list[tuple[bytes, bytes]]]:
        """Return, for each range, the keys with start <= key < stop and their values before this attempt."""
        stored = [(start[:LONGEST_PREFIX], stored_stop(stop)) for start, stop in ranges]
        found: list[list[tuple[bytes, bytes]]] = []
        for (start, stop), cells in zip(ranges, self.store.scan_ranges(table, stored), strict=True):
            inside = [(key, cell) for key, cell in cells if start <= key and (stop is None or key < stop)]
            values = [(key, cell.before(self._fence)) for key, cell in inside]
            found.append([(key, value) for key, value in values if value is not None])
        return found

    def first_key(self, table: str, start: bytes = b"") -> bytes | None:
        """Return the least key from `start` on that has a value, including this attempt's writes once they are
        committed."""
        for key, cell in self.store.scan(table, start, page=64):
            if (cell.epoch, cell.batch) == self._fence.attempt:
                if cell.new is not None:
                    return key
            elif cell.before(self._fence) is not None:
                return key
        return None

    def write(self, table: str, rows: Sequence[tuple[bytes, bytes | None, bytes | None]]) -> None:
        """Write rows of (key, value, value before); no value deletes."""
        attempt = self._fence.attempt
        keys, new, old = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
        stored = stored_keys(keys)
        carried = None if stored is keys else [carried_key(key) for key in keys]
        items = sorted(zip(stored, encode_cells(attempt, new, old, carried), strict=True))
        self._writes.append((table, items))
        self._add_tombstones(table, [key for key, new, _ in rows if new is None])

    def mark(self, table: str, keys: Sequence[bytes]) -> None:
        """Write empty values that did not exist before: index entries, whose cells are all equal."""
        cell = encode_cell(self._fence.attempt, b"", None)
        stored = stored_keys(keys)
        if stored is keys:
            self._writes.append((table, sorted((key, cell) for key in keys)))
        else:
            self.write(table, [(key, b"", None) for key in keys])

    def write_fixed(
        self,
        table: str,
        keys: Sequence[bytes],
        new: npt.NDArray[Any],
        old: npt.NDArray[Any],
        existed: npt.NDArray[np.bool_],
    ) -> None:
        self._write_cells(table, keys, encode_fixed(self._fence.attempt, new, None, old, existed))

    def _write_cells(self, table: str, keys: Sequence[bytes], cells: list[bytes]) -> None:
        stored = stored_keys(keys)
        if stored is not keys:
            pairs = zip(keys, cells, strict=True)
            cells = [with_key(cell, key) if carried_key(key) else cell for key, cell in pairs]
        self._writes.append((table, list(zip(stored, cells, strict=True))))

    def delete_fixed(
        self, table: str, keys: Sequence[bytes], old: npt.NDArray[Any], existed: npt.NDArray[np.bool_]
    ) -> None:
        cells = encode_fixed(self._fence.attempt, old, np.zeros(len(old), np.bool_), old, existed)
        self._write_cells(table, keys, cells)
        self._add_tombstones(table, list(keys))

    def discard(self, table: str, keys: Sequence[bytes]) -> None:
        """Remove cells immediately that no attempt can read: a committed batch no longer needs them."""
        self._removals.append((table, [stored_key(key) for key in keys]))

    def discard_below(self, table: str, stop: bytes, limit: int = 500_000) -> None:
        """Remove cells below a key immediately, under the same condition; the rest over the limit is removed next
        time."""
        rows = self.store.page(table, b"", stop, limit=limit)
        self._removals.append((table, [key for key, _ in rows]))

    def _add_tombstones(self, table: str, keys: list[bytes]) -> None:
        """Record deletes, so that a later batch removes the deleted cells."""
        if keys:
            self._deleted[table] += len(keys)
            attempt = self._fence.attempt
            stamp = attempt.epoch.to_bytes(4, "big") + attempt.batch.to_bytes(8, "big")
            tombstones = [(stamp + stored_key(key), b"") for key in keys]
            tombstones.sort()
            self._writes.append((tombstones_of(table), tombstones))

    def sweep(self, tables: Iterable[str], limit: int = 100_000) -> None:
        """Remove the cells that earlier, committed batches deleted and that were not written since."""
        for table in tables:
            rows = self.store.page(tombstones_of(table), limit=limit)
            if not rows:
                continue
            keys = [key[12:] for key, _ in rows]
            gone: list[bytes] = []
            done: list[bytes] = []
            for (tombstone, _), key, data in zip(rows, keys, self.store.get_many(table, keys), strict=True):
                epoch, batch = int.from_bytes(tombstone[:4], "big"), int.from_bytes(tombstone[4:12], "big")
                if (epoch, batch) == self._fence.attempt:
                    continue
                done.append(tombstone)
                if data is not None and self._fence.counts(epoch, batch):
                    cell = decode_cell(data, table, key)
                    if cell.new is None and (cell.epoch, cell.batch) == (epoch, batch):
                        gone.append(key)
            self._removals += [(tombstones_of(table), done), (table, gone)]

    def count(self, table: str) -> int:
        """Count the keys of a table after the commit. The cells that this batch has deleted are still there."""
        return max(0, self.store.entries(table) - self._deleted[table])

    def commit(self) -> None:
        self.store.put_many(self._fence.attempt, self._writes, self._removals)
        self._writes, self._removals = [], []


def tombstones_of(table: str) -> str:
    return f"{table}{TOMBSTONES}"
