"""Open the stores and snapshots at a state URL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from potok.backends.objects.open import object_client
from potok.backends.state_url import CASSANDRA, FILE, OBJECTS, REDIS, Where
from potok.settings import Settings
from potok.state.entry import Entry
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore
from potok.state.objects.object_store import Named, ObjectStore, remove_objects
from potok.state.objects.shard_copy import CopyDirectory
from potok.state.store import ShardSnapshot, Store


@lru_cache(maxsize=4_096)
def shard_path(where: Where, query: str, shard: int) -> Path:
    """Return the directory of a shard in LMDB."""
    return where.directory / "queries" / query / "state" / str(shard)


def copies_of(where: Where, query: str, copies: str = "") -> Path:
    """Return where the machine keeps copies of the shards of a query in object storage."""
    chosen = tuple(os.environ.get(name, "") for name in ("POTOK_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    root = Path(copies) if copies else _cache(os.getcwd(), chosen)
    return root / "state" / blake2b(str(where).encode(), digest_size=8).hexdigest() / quote(query, safe="@.")


@lru_cache(maxsize=16)
def _cache(directory: str, _: tuple[str, ...]) -> Path:
    """Return the cache directory of a process; its settings are read once."""
    return Settings.load(directory=directory).cache_path


def open_objects(
    where: str | Path | Where,
    query: str,
    shard: int,
    *,
    create: bool = True,
    named: Named = Named(),
    copies: str = "",
) -> ObjectStore:
    """Open a shard in object storage, at the position that the ledger names, with its copy in a cache directory."""
    location = _where(where)
    directory = copies_of(location, query, copies) / str(shard)
    return ObjectStore(object_client(location), query, shard, directory, named, create=create)


def open_store(where: str | Path | Where, query: str, shard: int, *, create: bool = True) -> Store:
    """Open the store of one shard of a query. Without `create`, it must exist (`StateMissing`).

    >>> store = open_store("redis://localhost:6379/0", "stream-processor", 0)
    """
    location = _where(where)
    if location.kind == FILE:
        return LmdbStore(shard_path(location, query, shard), create=create)
    if location.kind == OBJECTS:
        return open_objects(location, query, shard, create=create)
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
    where: str | Path | Where,
    query: str,
    shards: int,
    *,
    frozen: bool = False,
    named: Named = Named(),
    copies: str = "",
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
        elif location.kind == OBJECTS:
            stores = [open_objects(location, query, shard, named=named, copies=copies) for shard in range(shards)]
            yield [stack.enter_context(LmdbSnapshot(store.local_path(), must_exist=True)) for store in stores]
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
def open_snapshot(
    where: str | Path | Where,
    query: str,
    shard: int,
    *,
    named: Named = Named(),
    copies: str = "",
) -> Iterator[ShardSnapshot]:
    """Open a snapshot of one shard."""
    location = _where(where)
    if location.kind == FILE:
        with LmdbSnapshot(shard_path(location, query, shard)) as snapshot:
            yield snapshot
    elif location.kind == OBJECTS:
        store = open_objects(location, query, shard, named=named, copies=copies)
        with LmdbSnapshot(store.local_path(), must_exist=True) as snapshot:
            yield snapshot
    else:
        with open_snapshots(where, query, shard + 1) as opened:
            yield opened[shard]


def close_store(where: str | Path | Where, query: str, shard: int, copies: str = "") -> None:
    """Close the files of a shard, so that they can be removed."""
    location = _where(where)
    if location.kind == FILE:
        close_environment(shard_path(location, query, shard))
    elif location.kind == OBJECTS:
        CopyDirectory(copies_of(location, query, copies) / str(shard)).close()


def remove_state(where: str | Path | Where, query: str, copies: str = "") -> None:
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
    elif location.kind == OBJECTS:
        remove_objects(object_client(location), query)
        directory = copies_of(location, query, copies)
        for shard in directory.glob("*"):
            CopyDirectory(shard).remove()
        shutil.rmtree(directory, ignore_errors=True)
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
    shadow.

    For object storage, `named` is what the ledger says about the shards, and `copies` the directory for the copies on
    the local disk of each machine; empty for its cache directory.
    """

    where: Where
    name: str
    named: Named = field(default_factory=Named)
    copies: str = ""

    def store(self, shard: int, *, create: bool = True) -> Store:
        if self.where.kind == OBJECTS:
            return open_objects(self.where, self.name, shard, create=create, named=self.named, copies=self.copies)
        return open_store(self.where, self.name, shard, create=create)

    @contextmanager
    def snapshots(self, shards: int, *, frozen: bool = False) -> Iterator[list[ShardSnapshot]]:
        """Open snapshots of all shards; `frozen` ones never change in any store, at a cost."""
        with open_snapshots(
            self.where, self.name, shards, frozen=frozen, named=self.named, copies=self.copies
        ) as opened:
            yield opened

    @contextmanager
    def snapshot(self, shard: int) -> Iterator[ShardSnapshot]:
        with open_snapshot(self.where, self.name, shard, named=self.named, copies=self.copies) as opened:
            yield opened

    def local_path(self, shard: int) -> Path | None:
        """Return the LMDB directory of a shard on this machine, brought up to date; None for servers."""
        if self.where.kind == FILE:
            return shard_path(self.where, self.name, shard)
        store = self.store(shard)
        return store.local_path() if isinstance(store, ObjectStore) else None

    def at(self, entry: Entry) -> StateLocation:
        """Return the location as of an entry of the ledger."""
        return replace(self, named=Named(entry.cells, entry.positions)) if self.where.kind == OBJECTS else self

    def positions(self, shards: int) -> dict[int, str]:
        """Return the positions that shards have reached, for the ledger; empty for stores that have none."""
        if self.where.kind != OBJECTS:
            return {}
        reached = {shard: self.store(shard).position for shard in range(shards)}
        return {shard: position for shard, position in reached.items() if position is not None}

    def close(self, shards: int) -> None:
        """Close the files, so that they can be removed."""
        for shard in range(shards):
            close_store(self.where, self.name, shard, self.copies)

    def remove(self) -> None:
        """Remove all cells and the location itself."""
        remove_state(self.where, self.name, self.copies)

    def with_password(self) -> StateLocation:
        return replace(self, where=self.where.with_password())

    def __str__(self) -> str:
        return f"{self.where} ({self.name})"
