"""A shard in LMDB at one instant, unaffected by concurrent writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from potok.state.fence import Attempt
from potok.state.lmdb.buffered import BufferedTable
from potok.state.lmdb.environment import DAMAGED, Environment, EnvironmentClosed, is_there, open_environment
from potok.state.lmdb.lmdb_store import ATTEMPT, ATTEMPT_FORMAT, META, logical_tables
from potok.state.store import Row, ShardSnapshot, SnapshotGone, stored_key


class LmdbSnapshot(ShardSnapshot):
    """One read transaction over all tables of a shard."""

    frozen = True

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        """With `whole`, verify every page first, even of an unchanged file."""
        self._path = path
        self._environment: Environment | None = None
        if is_there(path):
            self._environment = open_environment(path, create=False)
            if whole:
                self._environment.check_whole()
        self._txn: Any = None
        self._tables: dict[str, Any] = {}

    def __enter__(self) -> LmdbSnapshot:
        if self._environment is not None:
            with self._still_there():
                self._txn, self._tables = self._environment.snapshot()
        return self

    def __exit__(self, *_: object) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None

    @contextmanager
    def _still_there(self) -> Iterator[None]:
        """Convert errors: another thread may close the environment to write to it."""
        try:
            yield
        except EnvironmentClosed as error:
            raise SnapshotGone(self._path) from error
        except DAMAGED as error:
            assert self._environment is not None
            raise self._environment.translated(error) from error
        except lmdb.Error as error:
            if type(error) is not lmdb.Error and not isinstance(error, lmdb.BadTxnError):
                raise
            raise SnapshotGone(self._path) from error

    def get(self, table: str, key: bytes) -> bytes | None:
        if self._txn is None:
            return None
        with self._still_there():
            return BufferedTable(table, self._tables.get).get_many(self._txn, [stored_key(key)])[0]

    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        if self._txn is not None:
            with self._still_there():
                yield from BufferedTable(table, self._tables.get).scan(self._txn, start, stop)

    def tables(self) -> list[str]:
        return logical_tables(list(self._tables))

    def attempt(self) -> Attempt | None:
        meta = self._tables.get(META)
        if self._txn is None or meta is None:
            return None
        seen = self._txn.get(ATTEMPT, None, meta)
        return Attempt(*ATTEMPT_FORMAT.unpack(seen)) if seen else None
