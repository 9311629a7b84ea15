"""Open the stores and snapshots at a state URL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from potok.backends.state_url import CASSANDRA, FILE, REDIS, Where
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore
from potok.state.store import ShardSnapshot, Store


@lru_cache(maxsize=4_096)
def shard_path(where: Where, query: str, shard: int) -> Path:
    """Return the directory of a shard in LMDB."""
    return where.directory / "queries" / query / "state" / str(shard)


def open_store(where: str | Path | Where, query: str, shard: int, *, create: bool = True) -> Store:
    """Open the store of one shard of a query. Without `create`, it must exist (`StateMissing`).

    >>> store = open_store("redis://localhost:6379/0", "stream-processor", 0)
    """
    location = _where(where)
    if location.kind == FILE:
        return LmdbStore(shard_path(location, query, shard), create=create)
    if location.kind == REDIS:
        from potok.state.redis_store import RedisStore

        return RedisStore(location, query, shard, create=create)
    if location.kind == CASSANDRA:
        from potok.state.cassandra.cassandra_store import CassandraStore

        return CassandraStore(location, query, shard, create=create)
    from potok.state.postgres_store import PostgresStore

    return PostgresStore(location, query, shard, create=create)


@contextmanager
def open_snapshots(
    where: str | Path | Where, query: str, shards: int, *, frozen: bool = False
) -> Iterator[list[ShardSnapshot]]:
    """Open snapshots of all shards of a query.

    The caller checks that they belong to one committed batch. With `frozen` they never change, even in a store that
    must copy the cells for that.
    """
    location = _where(where)
    with ExitStack() as stack:
        if location.kind == FILE:
            paths = (shard_path(location, query, shard) for shard in range(shards))
            yield [stack.enter_context(LmdbSnapshot(path)) for path in paths]
        elif location.kind == REDIS:
            from potok.state.redis_store import RedisSnapshot, frozen_snapshots

            if frozen:
                yield stack.enter_context(frozen_snapshots(location, query, shards))
            else:
                yield [RedisSnapshot(location, query, shard) for shard in range(shards)]
        elif location.kind == CASSANDRA:
            from potok.state.cassandra import snapshots as cassandra

            if frozen:
                yield stack.enter_context(cassandra.frozen_snapshots(location, query, shards))
            else:
                yield [cassandra.CassandraSnapshot(location, query, shard) for shard in range(shards)]
        else:
            from potok.state.postgres_store import postgres_snapshots

            yield stack.enter_context(postgres_snapshots(location, query, shards))


@contextmanager
def open_snapshot(where: str | Path | Where, query: str, shard: int) -> Iterator[ShardSnapshot]:
    """Open a snapshot of one shard."""
    location = _where(where)
    if location.kind == FILE:
        with LmdbSnapshot(shard_path(location, query, shard)) as snapshot:
            yield snapshot
    else:
        with open_snapshots(where, query, shard + 1) as opened:
            yield opened[shard]


def close_store(where: str | Path | Where, query: str, shard: int) -> None:
    """Close the files of a shard, so that they can be removed."""
    location = _where(where)
    if location.kind == FILE:
        close_environment(shard_path(location, query, shard))


def remove_state(where: str | Path | Where, query: str) -> None:
    """Remove the cells of a query, of all shards."""
    location = _where(where)
    if location.kind == FILE:
        directory = shard_path(location, query, 0).parent
        for shard in directory.glob("*"):
            close_environment(shard)
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            # Remove the directory with the cells, unless it holds other data of the query.
            directory.parent.rmdir()
    elif location.kind == REDIS:
        from potok.state.redis_store import remove_shards

        remove_shards(location, query)
    elif location.kind == CASSANDRA:
        from potok.state.cassandra.cassandra_store import remove_shards as remove_from_cassandra

        remove_from_cassandra(location, query)
    else:
        from potok.state.postgres_store import drop_state_tables

        drop_state_tables(location, query)


def _where(where: str | Path | Where) -> Where:
    location = where if isinstance(where, Where) else Where.of(where)
    location.need_driver()
    return location


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

    @contextmanager
    def snapshot(self, shard: int) -> Iterator[ShardSnapshot]:
        with open_snapshot(self.where, self.name, shard) as opened:
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
