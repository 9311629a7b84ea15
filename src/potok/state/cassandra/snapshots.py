"""Shards in Cassandra, read during writes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from potok.backends.state_url import Where
from potok.state.cassandra.cassandra_store import CassandraStore
from potok.state.fence import Attempt
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore
from potok.state.store import Row, ShardSnapshot, stored_key

PAGE = 5_000
COPIED = 50_000
"""How many cells are copied at a time."""


class CassandraSnapshot(ShardSnapshot):
    """A shard, read during writes.

    Cassandra has no snapshots. As with Redis, a reader that finds the same committed batch in the ledger before and
    after its reads has seen exactly that batch.
    """

    frozen = False

    def __init__(self, where: Where, query: str, shard: int) -> None:
        self._store = CassandraStore(where, query, shard)

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._store.get_many(table, [stored_key(key)])[0]

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


@contextmanager
def frozen_snapshots(where: Where, query: str, shards: int) -> Iterator[list[ShardSnapshot]]:
    """Copy all shards to temporary files of this machine, where they are removed afterwards.

    The caller checks that no batch was committed while they were copied.
    """
    directory = Path(tempfile.mkdtemp(prefix="potok-copy-"))
    copies = [directory / str(shard) for shard in range(shards)]
    try:
        with ExitStack() as stack:
            for shard, copy in enumerate(copies):
                _copy(CassandraStore(where, query, shard), copy)
            yield [stack.enter_context(LmdbSnapshot(copy)) for copy in copies]
    finally:
        for copy in copies:
            close_environment(copy)
        shutil.rmtree(directory, ignore_errors=True)


def _copy(store: CassandraStore, path: Path) -> None:
    attempt = store.attempt()
    if attempt is None:
        return
    copy = LmdbStore(path)
    copy.put_many(attempt, [])
    for table in store.tables():
        start = b""
        while rows := store.page(table, start, limit=COPIED):
            copy.put_many(attempt, [(table, rows)])
            start = rows[-1][0] + b"\x00"
