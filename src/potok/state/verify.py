"""Looking at every cell: whether it is as it was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from potok.state.cell import CorruptCell, decode_cell
from potok.state.store import Row, Snapshot


@dataclass(frozen=True, slots=True)
class Damage:
    """A cell whose checksum does not fit, by the key that the store has it under."""

    shard: int
    table: str
    key: bytes


@dataclass(slots=True)
class Findings:
    cells: int = 0
    bytes: int = 0
    damaged: list[Damage] = field(default_factory=list)

    def look(self, shard: int, table: str, rows: Iterable[Row]) -> None:
        for key, data in rows:
            self.cells += 1
            self.bytes += len(data or b"")
            try:
                decode_cell(data or b"", table, key)
            except CorruptCell:
                self.damaged.append(Damage(shard, table, key))


def verify(snapshots: Iterable[Snapshot]) -> Findings:
    """All cells of all shards, those of the running batch too."""
    found = Findings()
    for shard, snapshot in enumerate(snapshots):
        for table in snapshot.tables():
            found.look(shard, table, snapshot.rows(table))
    return found
