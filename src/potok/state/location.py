"""The location of the cells of one query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from potok.backends.state_url import Where
from potok.state.open import close_store, open_snapshots, open_store, remove_state
from potok.state.store import ShardSnapshot, Store


@dataclass(frozen=True, slots=True)
class StateLocation:
    """A store, and the name under which it holds the cells: that of the query, or another one if they were built by a
    shadow."""

    where: Where
    name: str

    def store(self, shard: int, *, create: bool = True) -> Store:
        return open_store(self.where, self.name, shard, create=create)

    @contextmanager
    def snapshots(self, shards: int, *, frozen: bool = False) -> Iterator[list[ShardSnapshot]]:
        """Open snapshots of all shards; `frozen` ones never change in any store, at a cost."""
        with open_snapshots(self.where, self.name, shards, frozen=frozen) as opened:
            yield opened

    def close(self, shards: int) -> None:
        """Close the files, so that they can be removed."""
        for shard in range(shards):
            close_store(self.where, self.name, shard)

    def remove(self) -> None:
        """Remove all cells and the location itself."""
        remove_state(self.where, self.name)

    def with_password(self) -> StateLocation:
        return StateLocation(self.where.with_password(), self.name)

    def __str__(self) -> str:
        return f"{self.where} ({self.name})"
