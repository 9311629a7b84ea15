"""Distribute the cells of a stopped query over another number of shards, for each form of cells.

Most cells move unchanged to the shard of a key that is derived from their own key. A cell that holds values of many
keys is split, and parts that meet on a shard are merged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np
import numpy.typing as npt

from potok.checksum import crc32
from potok.operators.cells.sorted_runs import LARGE, Runs
from potok.operators.cells.waiting_records import part_of, waiting_keys, waiting_times
from potok.operators.exchange.repartition import grouped_keys
from potok.operators.joins.join_rows import Rows, concat_rows
from potok.operators.windows.expiry import HORIZON, NEVER
from potok.operators.windows.windows import time_bytes
from potok.records.keys import encode_keys
from potok.state.cell import decode_cell
from potok.state.codec import dump_state, load_state
from potok.state.fence import Attempt, Fence
from potok.state.session import StateSession
from potok.state.store import Row, Store, original_key

PAGE = 20_000

Mask = npt.NDArray[np.bool_]

Homes = Callable[[list[bytes]], list[bytes]]
"""From the keys of cells to the canonical keys that determine their shard."""


@dataclass(frozen=True, slots=True)
class LiveCell:
    """A cell with a value: its key, its value, and its stored form."""

    key: bytes
    value: bytes
    row: Row


@dataclass(frozen=True, slots=True)
class Source:
    """A shard before resharding."""

    store: Store
    fence: Fence

    @property
    def session(self) -> StateSession:
        return StateSession(self.store, self.fence)

    def pages(self, table: str) -> Iterator[list[LiveCell]]:
        """Yield the cells that have a value; deleted and uncommitted ones are left behind."""
        start = b""
        while True:
            rows = self.store.page(table, start, limit=PAGE)
            cells = [(row, decode_cell(row[1], table, row[0])) for row in rows]
            values = [(row, cell, cell.before(self.fence)) for row, cell in cells]
            yield [LiveCell(original_key(row[0], cell), value, row) for row, cell, value in values if value is not None]
            if len(rows) < PAGE:
                return
            start = rows[-1][0] + b"\x00"


class Target:
    """A shard after resharding. Everything is written by one committed attempt."""

    def __init__(self, store: Store, attempt: Attempt) -> None:
        self._store, self._attempt = store, attempt

    @property
    def session(self) -> StateSession:
        return StateSession(self._store, Fence(self._attempt))

    def copy(self, table: str, rows: list[Row]) -> None:
        """Copy cells unchanged, with the attempts that wrote them."""
        self._store.put_many(self._attempt, [(table, rows)])

    def write(self, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        session = self.session
        session.write(table, [(key, value, None) for key, value in rows])
        session.commit()

    def settle(self) -> None:
        """Fence writers older than what was copied, even if there was nothing to copy."""
        self._store.put_many(self._attempt, [])


class Placement(Protocol):
    """How the cells of one table are distributed."""

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None: ...


@dataclass(frozen=True, slots=True)
class ByKey:
    """Each cell goes to the shard of one key."""

    homes: Homes

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        for source in sources:
            for page in source.pages(table):
                rows: dict[int, list[Row]] = defaultdict(list)
                for cell, home in zip(page, self.homes([cell.key for cell in page]), strict=True):
                    rows[crc32(home) % len(targets)].append(cell.row)
                for shard, mine in rows.items():
                    targets[shard].copy(table, mine)


@dataclass(frozen=True, slots=True)
class OnFirst:
    """All cells stay on the first shard."""

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        for source in sources:
            for page in source.pages(table):
                targets[0].copy(table, [cell.row for cell in page])


@dataclass(frozen=True, slots=True)
class Everywhere:
    """Every shard has the same cell: the horizon, which each advances with the same watermark."""

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        found = [cell.value for source in sources for page in source.pages(table) for cell in page]
        for target in targets if found else ():
            target.write(table, [(HORIZON, max(found))])


@dataclass(frozen=True, slots=True)
class Lists:
    """A cell is a list of keys under a time; lists of one time that meet are merged."""

    homes: Homes

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        lists: list[dict[bytes, list[bytes]]] = [defaultdict(list) for _ in targets]
        for source in sources:
            for page in source.pages(table):
                for cell in page:
                    keys: list[bytes] = load_state(cell.value)
                    for key, home in zip(keys, self.homes(keys), strict=True):
                        lists[crc32(home) % len(targets)][cell.key].append(key)
        for target, mine in zip(targets, lists, strict=True):
            target.write(table, [(time, dump_state(keys)) for time, keys in sorted(mine.items())])


@dataclass(frozen=True, slots=True)
class Packed:
    """A cell is a column of records under the time of the first one, and a number that says when it was written."""

    windowed: bool

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        numbers: list[dict[bytes, Iterator[int]]] = [defaultdict(count) for _ in targets]
        for source in sources:
            cells = [cell for page in source.pages(table) for cell in page]
            # The number determines the order in which records of one time are emitted.
            for cell in sorted(cells, key=lambda cell: cell.key[8:]):
                keys = waiting_keys(cell.value)
                homes = encode_keys(grouped_keys(keys) if self.windowed else keys).fill_null(b"").to_pylist()
                shards = np.fromiter(map(crc32, homes), np.int64, len(homes)) % len(targets)
                for shard in np.unique(shards).tolist():
                    part = part_of(cell.value, np.flatnonzero(shards == shard))
                    batch = cell.key[8:16]
                    time = time_bytes(waiting_times(part)[:1])[0]
                    stamp = batch + next(numbers[shard][batch]).to_bytes(4, "big")
                    targets[shard].write(table, [(time + stamp, part)])


@dataclass(frozen=True, slots=True)
class InRuns:
    """Rows that wait for others are in pages by the hash of their key, and that hash determines the shard."""

    keep_ms: int
    marked: bool

    def spread(self, table: str, sources: Sequence[Source], targets: Sequence[Target]) -> None:
        parts: list[list[tuple[Rows, Mask]]] = [[] for _ in targets]
        for source in sources:
            for rows, marks in Runs(table, source.session, self.keep_ms, marked=self.marked).everything():
                shards = rows.hashes % len(targets)
                for shard in np.unique(shards).tolist():
                    there = shards == shard
                    parts[shard].append((rows.where(there), marks[there]))
        for target, mine in zip(targets, parts, strict=True):
            if mine:
                self._write(table, target, mine)

    def _write(self, table: str, target: Target, parts: list[tuple[Rows, Mask]]) -> None:
        session = target.session
        runs = Runs(table, session, self.keep_ms, marked=self.marked)
        rows, marks = concat_rows([rows for rows, _ in parts]), np.concatenate([marks for _, marks in parts])
        for first in range(0, len(rows), LARGE):
            part, marked = rows.slice(first, min(LARGE, len(rows) - first)), marks[first : first + LARGE]
            order = np.argsort(part.hashes, kind="stable")
            runs.add(part.take(order), marked[order], NEVER)
        runs.finish()
        session.commit()
