"""LMDB environments: one per path and process, opened once, grown on demand."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import lmdb

T = TypeVar("T")

MAP_SIZE = 4 << 30
MAX_TABLES = 1024
MAX_READERS = 510

# LMDB forbids opening one path twice in a process, and an environment does not survive a fork.
_open: dict[tuple[int, str], Environment] = {}
_guard = threading.Lock()


class Environment:
    """An LMDB environment that grows when it is full and follows when another process made it grow."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        if create:
            path.mkdir(parents=True, exist_ok=True)
        self._env = lmdb.open(
            str(path),
            map_size=MAP_SIZE,
            max_dbs=MAX_TABLES,
            max_readers=MAX_READERS,
            readonly=not create,
            create=create,
            readahead=False,
            meminit=False,
        )
        self.writable = create
        if create:
            # Readers that were killed would keep their pages from being used again.
            self._env.reader_check()
        self._tables: dict[str, Any] = {}

    def table(self, name: str) -> Any | None:
        """The handle of a named table, or None where it does not exist and cannot be made."""
        handle = self._tables.get(name)
        if handle is None:
            try:
                handle = self._env.open_db(name.encode(), create=self.writable)
            except (lmdb.NotFoundError, lmdb.ReadonlyError):
                return None
            self._tables[name] = handle
        return handle

    def table_names(self) -> list[str]:
        return self.read(lambda txn: [key.decode() for key, _ in txn.cursor()])

    def read(self, work: Callable[[Any], T]) -> T:
        """Run `work` in a short read transaction."""
        with self._begin(write=False) as txn:
            return work(txn)

    def write(self, work: Callable[[Any], T]) -> T:
        """Run `work` in one write transaction; it runs again in a larger map if this one is full."""
        while True:
            try:
                with self._begin(write=True) as txn:
                    return work(txn)
            except lmdb.MapFullError:
                self._env.set_mapsize(self._env.info()["map_size"] * 2)

    def snapshot(self) -> tuple[Any, dict[str, Any]]:
        """A read transaction that the caller ends, and the tables in it: a transaction knows only those opened
        before."""
        for name in self.table_names():
            self.table(name)
        return self._begin(write=False), dict(self._tables)

    def _begin(self, *, write: bool) -> Any:
        try:
            return self._env.begin(write=write)
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
            return self._env.begin(write=write)

    def size_bytes(self) -> int:
        return (self.path / "data.mdb").stat().st_size

    def close(self) -> None:
        self._env.close()


def open_environment(path: Path, *, create: bool = True) -> Environment:
    """The environment at a path: the one that this process has open, or a new one."""
    real = os.path.abspath(path)
    with _guard:
        key = (os.getpid(), real)
        found = _open.get(key)
        if found is not None and create and not found.writable:
            found.close()
            found = None
        if found is None:
            found = _open[key] = Environment(Path(real), create=create)
        return found


def close_environment(path: Path) -> None:
    """Close what this process has open at a path, so that the files can be removed."""
    with _guard:
        found = _open.pop((os.getpid(), os.path.abspath(path)), None)
        if found is not None:
            found.close()
