"""Verify every cell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from potok.backends.state_url import FILE, OBJECTS
from potok.errors import StateError
from potok.permissions import private_directory
from potok.state.cell import CorruptCell, decode_cell
from potok.state.lmdb.lmdb_store import LmdbSnapshot
from potok.state.open import StateLocation, copies_of, shard_path
from potok.state.session import TOMBSTONES
from potok.state.store import Row, ShardSnapshot
from potok.storage.isolate import ReaderDied, isolated

_OFTEN = 50_000
"""How many cells a reader verifies between two progress reports."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A cell with a wrong checksum, by its stored key."""

    shard: int
    table: str
    key: bytes


@dataclass(frozen=True, slots=True)
class DamagedShard:
    """A shard that cannot be read."""

    shard: int
    location: str
    why: str
    hint: str


@dataclass(slots=True)
class Findings:
    cells: int = 0
    bytes: int = 0
    damaged: list[Damage] = field(default_factory=list)
    shards: list[DamagedShard] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.damaged and not self.shards

    def check(self, shard: int, table: str, rows: Iterable[Row]) -> None:
        for _ in self.checking(shard, table, rows):
            pass

    def checking(self, shard: int, table: str, rows: Iterable[Row]) -> Iterator[None]:
        """Verify cells, yielding at intervals to show progress."""
        for key, data in rows:
            self.cells += 1
            self.bytes += len(data or b"")
            # A deleted cell has only its key.
            if not (table.endswith(TOMBSTONES) and not data):
                try:
                    decode_cell(data or b"", table, key)
                except CorruptCell:
                    self.damaged.append(Damage(shard, table, key))
            if self.cells % _OFTEN == 0:
                yield


def verify(location: StateLocation, shards: int) -> Findings:
    """Verify all cells of all shards, including those of the running batch; each shard in its own process.

    State in object storage is read from there, whatever copies this machine has.
    """
    if location.where.kind != OBJECTS:
        return _verify(location, shards)
    directory = copies_of(location.where, location.name, location.copies).parent
    private_directory(directory)
    with tempfile.TemporaryDirectory(prefix="verify-", dir=directory) as copies:
        fresh = replace(location, copies=copies)
        try:
            return _verify(fresh, shards)
        finally:
            fresh.close(shards)


def _verify(location: StateLocation, shards: int) -> Findings:
    found = Findings()
    for shard in range(shards):
        where = str(shard_path(location.where, location.name, shard)) if location.where.kind == FILE else str(location)
        try:
            # Before the fork: the client of a bucket has threads.
            path = location.local_path(shard)
            for said in isolated(lambda shard=shard, path=path: _check_shard(location, shards, shard, path)):  # type: ignore[misc]
                found.cells += said["cells"]
                found.bytes += said["bytes"]
                found.damaged += [Damage(shard, table, bytes.fromhex(key)) for table, key in said["damaged"]]
        except (StateError, ReaderDied) as error:
            found.shards.append(DamagedShard(shard, where, error.message, error.hint))
    return found


def _check_shard(
    location: StateLocation, shards: int, shard: int, path: Path | None
) -> Iterator[dict[str, Any] | None]:
    found = Findings()
    if path is not None:
        with LmdbSnapshot(path, whole=True) as snapshot:
            yield from _check_snapshot(found, shard, snapshot)
    else:
        with location.snapshots(shards) as snapshots:
            yield from _check_snapshot(found, shard, snapshots[shard])
    yield {**asdict(found), "damaged": [(cell.table, cell.key.hex()) for cell in found.damaged]}


def _check_snapshot(found: Findings, shard: int, snapshot: ShardSnapshot) -> Iterator[None]:
    for table in snapshot.tables():
        yield from found.checking(shard, table, snapshot.rows(table))
