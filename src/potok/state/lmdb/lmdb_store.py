"""The cells of one shard of a query in LMDB: many processes read while one writes."""

from __future__ import annotations

import itertools
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from potok.state.fence import Attempt, StaleAttempt
from potok.state.lmdb.buffered import BufferedTable, trees_of
from potok.state.lmdb.environment import (
    DAMAGED,
    Environment,
    EnvironmentClosed,
    close_environment,
    is_there,
    open_environment,
)
from potok.state.store import (
    CHUNK,
    Range,
    Removals,
    Row,
    ShardSnapshot,
    SnapshotGone,
    StateMissing,
    Store,
    Writes,
    stored_key,
)

META = "/meta"
ATTEMPT = b"attempt"
ATTEMPT_FORMAT = struct.Struct(">IQ")


class LmdbStore(Store):
    """One environment of named tables, two trees each (`buffered.py`)."""

    def __init__(self, path: Path, *, create: bool = True, durable: bool = True) -> None:
        if not create and not is_there(path):
            raise StateMissing(path)
        self.path, self.location, self._durable = path, str(path), durable
        self._environment = open_environment(path, create=create, durable=durable)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        trees = BufferedTable(table, self._environment.table)
        return self._environment.read(lambda txn: trees.get_many(txn, keys))

    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        change = self._change(writes, removals)
        meta = self._environment.table(META)

        def work(txn: Any) -> None:
            seen = txn.get(ATTEMPT, None, meta)
            highest = Attempt(*ATTEMPT_FORMAT.unpack(seen)) if seen else attempt
            if attempt < highest:
                raise StaleAttempt(attempt, highest, self.location)
            txn.put(ATTEMPT, ATTEMPT_FORMAT.pack(*attempt), db=meta)
            change(txn)

        self._environment.write(work)

    def _change(self, writes: Writes, removals: Removals) -> Callable[[Any], None]:
        """Return what applies writes and removals in a transaction; opens their tables before it."""
        written = [(table, items) for table, items in writes if items]
        removed = [(table, keys) for table, keys in removals if keys]
        trees = {table: BufferedTable(table, self._environment.table) for table, _ in [*written, *removed]}

        def apply(txn: Any) -> None:
            for table, keys in removed:
                for key in keys:
                    trees[table].delete(txn, key)
            for table, items in written:
                trees[table].put_many(txn, items)

        return apply

    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        trees = BufferedTable(table, self._environment.table)
        return self._environment.read(lambda txn: list(itertools.islice(trees.scan(txn, start, stop), limit)))

    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        trees = BufferedTable(table, self._environment.table)
        return self._environment.read(lambda txn: [list(trees.scan(txn, start, stop)) for start, stop in ranges])

    def entries(self, table: str) -> int:
        return self._environment.read(BufferedTable(table, self._environment.table).entries)

    def tables(self) -> list[str]:
        return logical_tables(self._environment.table_names())

    def drop_tables(self, tables: Sequence[str]) -> None:
        self._environment.write(self._drop(tables))

    def _drop(self, tables: Sequence[str]) -> Callable[[Any], None]:
        there = set(self._environment.table_names()) if tables else set()
        names = [tree for table in tables for tree in trees_of(table) if tree in there]
        handles = [self._environment.table(name) for name in names]

        def apply(txn: Any) -> None:
            for handle in handles:
                txn.drop(handle, delete=False)

        return apply

    def attempt(self) -> Attempt | None:
        meta = self._environment.table(META)
        if meta is None:
            return None
        seen = self._environment.read(lambda txn: txn.get(ATTEMPT, None, meta))
        return Attempt(*ATTEMPT_FORMAT.unpack(seen)) if seen else None

    def clear(self) -> None:
        close_environment(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        self._environment = open_environment(self.path, durable=self._durable)

    def size_bytes(self) -> int:
        return self._environment.size_bytes()

    def close(self) -> None:
        close_environment(self.path)


def logical_tables(names: Sequence[str]) -> list[str]:
    """Return the tables that were written, from the names of their trees."""
    small = {trees_of(name)[1] for name in names}
    return sorted(name for name in names if name != META and name not in small)


class LmdbSnapshot(ShardSnapshot):
    """One read transaction over all tables of a shard."""

    frozen = True

    def __init__(self, path: Path, *, whole: bool = False, must_exist: bool = False) -> None:
        """With `whole`, verify every page first, even of an unchanged file.

        A shard that was never written is empty; with `must_exist`, it is a file that another process has replaced.
        """
        self._path = path
        self._environment: Environment | None = None
        if is_there(path):
            self._environment = open_environment(path, create=False)
            if whole:
                self._environment.check_whole()
        elif must_exist:
            raise SnapshotGone(path)
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

    def chunks(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[list[Row]]:
        if self._txn is not None:
            with self._still_there():
                yield from BufferedTable(table, self._tables.get).chunks(self._txn, start, stop, CHUNK)

    def tables(self) -> list[str]:
        return logical_tables(list(self._tables))

    def attempt(self) -> Attempt | None:
        meta = self._tables.get(META)
        if self._txn is None or meta is None:
            return None
        seen = self._txn.get(ATTEMPT, None, meta)
        return Attempt(*ATTEMPT_FORMAT.unpack(seen)) if seen else None
