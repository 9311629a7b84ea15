"""A shard in Redis, read during writes.

Redis has no snapshots. But a cell holds the value of one batch back, so a reader that finds the same committed batch
in the ledger before and after its reads has seen exactly that batch: writes of the running batch count with their old
value. If a batch was committed in between, the read starts over (`snapshots/snapshot.py`), so a read must be shorter
than a batch.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from potok.backends.redis_connection import connect, reached
from potok.backends.state_url import Where
from potok.state.fence import Attempt
from potok.state.redis.redis_store import RedisStore, ShardKeys
from potok.state.store import Row, ShardSnapshot, stored_key

PAGE = 5_000
EXPIRY_S = 24 * 3600


class RedisSnapshot(ShardSnapshot):
    frozen = False

    def __init__(self, where: Where, query: str, shard: int, keys: ShardKeys | None = None) -> None:
        self._where, self._keys, self._client = where, keys or ShardKeys(query, shard), connect(where)
        self._store = RedisStore(where, query, shard, keys=keys)

    def get(self, table: str, key: bytes) -> bytes | None:
        with reached(self._where):
            found: bytes | None = self._client.hget(self._keys.cells(table), stored_key(key))
            return found

    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        while True:
            rows = self._store.page(table, start, stop, limit=PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            start = rows[-1][0] + b"\x00"

    def tables(self) -> list[str]:
        return self._store.tables()

    def attempt(self) -> Attempt | None:
        return self._store.attempt()


class FrozenSnapshot(RedisSnapshot):
    """A copy that is never written."""

    frozen = True


@contextmanager
def frozen_snapshots(where: Where, query: str, shards: int) -> Iterator[list[ShardSnapshot]]:
    """Copy all shards on the server, which is much faster than reading them.

    The copies take as much memory as the shards, and expire if they are not removed.
    """
    client, token = connect(where), secrets.token_hex(8)
    copies = [ShardKeys(query, shard, f"copy-{token}") for shard in range(shards)]
    try:
        for shard, copy in enumerate(copies):
            _copy(client, where, ShardKeys(query, shard), copy)
        yield [FrozenSnapshot(where, query, shard, copy) for shard, copy in enumerate(copies)]
    finally:
        for copy in copies:
            _remove(client, where, copy)


def _copy(client: Any, where: Where, keys: ShardKeys, copy: ShardKeys) -> None:
    with reached(where):
        tables = [name.decode() for name in client.smembers(keys.tables)]
        pairs = [(keys.attempt, copy.attempt), (keys.tables, copy.tables)]
        for table in tables:
            pairs += [(keys.cells(table), copy.cells(table)), (keys.index(table), copy.index(table))]
        pipeline = client.pipeline(transaction=True)
        for source, target in pairs:
            pipeline.copy(source, target, replace=True)
            pipeline.expire(target, EXPIRY_S)
        pipeline.execute()


def _remove(client: Any, where: Where, copy: ShardKeys) -> None:
    with reached(where):
        tables = [name.decode() for name in client.smembers(copy.tables)]
        names = [name for table in tables for name in (copy.cells(table), copy.index(table))]
        client.unlink(copy.attempt, copy.tables, *names)
