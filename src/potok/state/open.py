"""Open the stores and snapshots at a state URL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from potok.backends.state_url import FILE, REDIS, Where
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_snapshot import LmdbSnapshot
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.state.store import ShardSnapshot, Store


@lru_cache(maxsize=4_096)
def shard_path(where: Where, query: str, shard: int) -> Path:
    """Return the directory of a shard in LMDB."""
    return where.directory / "queries" / query / "state" / str(shard)


def open_store(where: str | Path | Where, query: str, shard: int, *, create: bool = True) -> Store:
    """Open the store of one shard of a query. Without `create`, it must exist (`StateMissing`).

    >>> store = open_store("redis://localhost:6379/0", "stream-processor", 0)
    """
    place = _where(where)
    if place.kind == FILE:
        return LmdbStore(shard_path(place, query, shard), create=create)
    if place.kind == REDIS:
        from potok.state.redis.redis_store import RedisStore

        return RedisStore(place, query, shard, create=create)
    from potok.state.postgres.postgres_store import PostgresStore

    return PostgresStore(place, query, shard, create=create)


@contextmanager
def open_snapshots(
    where: str | Path | Where, query: str, shards: int, *, frozen: bool = False
) -> Iterator[list[ShardSnapshot]]:
    """Open snapshots of all shards of a query.

    The caller checks that they belong to one committed batch. With `frozen` they never change, even in a store that
    must copy the cells for that.
    """
    place = _where(where)
    with ExitStack() as stack:
        if place.kind == FILE:
            paths = (shard_path(place, query, shard) for shard in range(shards))
            yield [stack.enter_context(LmdbSnapshot(path)) for path in paths]
        elif place.kind == REDIS:
            from potok.state.redis.redis_snapshot import RedisSnapshot, frozen_snapshots

            if frozen:
                yield stack.enter_context(frozen_snapshots(place, query, shards))
            else:
                yield [RedisSnapshot(place, query, shard) for shard in range(shards)]
        else:
            from potok.state.postgres.postgres_snapshot import postgres_snapshots

            yield stack.enter_context(postgres_snapshots(place, query, shards))


def close_store(where: str | Path | Where, query: str, shard: int) -> None:
    """Close the files of a shard, so that they can be removed."""
    place = _where(where)
    if place.kind == FILE:
        close_environment(shard_path(place, query, shard))


def remove_state(where: str | Path | Where, query: str) -> None:
    """Remove the cells of a query, of all shards."""
    place = _where(where)
    if place.kind == FILE:
        directory = shard_path(place, query, 0).parent
        for shard in directory.glob("*"):
            close_environment(shard)
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            # Remove the directory with the cells, unless it holds other data of the query.
            directory.parent.rmdir()
    elif place.kind == REDIS:
        from potok.state.redis.redis_store import remove_shards

        remove_shards(place, query)
    else:
        from potok.state.postgres.schema import drop_state_tables

        drop_state_tables(place, query)


def _where(where: str | Path | Where) -> Where:
    place = where if isinstance(where, Where) else Where.of(where)
    place.need_driver()
    return place
