"""LMDB environments: one per path and process, opened once, grown on demand."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from potok.errors import StateError
from potok.machine import naming_machine
from potok.permissions import FILE_MODE, private_directory
from potok.state.cell import REPAIR
from potok.storage.checked_file import CheckedFile
from potok.storage.checksum_journal import JOURNAL_FILE
from potok.storage.page_format import DATA_FILE, PageDamage, bounded

T = TypeVar("T")

MAP_SIZE = 4 << 30
MAX_TABLES = 1024
MAX_READERS = 510

# LMDB forbids opening one path twice in a process, and an environment does not survive a fork.
_open: dict[tuple[int, str], Environment] = {}
_guard = threading.Lock()


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LITTLE_ROOM = 64 << 20
DAMAGED = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    PageDamage,
)


class StateFull(StateError):
    """No space for the state of a query."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(
            f"no space to write the state at {path}: {cause}",
            hint="nothing of the batch is visible; free some space and restart the query",
        )


class StateDamaged(StateError):
    """A state file that is damaged."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(f"the state at {path / DATA_FILE} is damaged: {cause}", hint=REPAIR)


class EnvironmentClosed(StateError):
    """Another thread has closed an environment, to write to it or to remove its files."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"the state at {path} was closed while it was read", hint="read it again")


class Environment:
    """An LMDB environment that grows when it is full, and remaps when another process has grown it."""

    def __init__(self, path: Path, *, create: bool, durable: bool = True) -> None:
        """Without `durable`, commits are not synced: for files that can be recreated after the machine has crashed."""
        self.path = path
        self._closed, self._durable = False, durable
        with naming_machine(f"opening the state at {path}"):
            if create:
                private_directory(path)
            self._checked = CheckedFile(path)
            try:
                self._env = self._opened(create=create)
            except (lmdb.Error, PageDamage) as error:
                self._checked.close()
                raise self.translated(error) from error
        self.writable = create
        self._file = _file_at(path)
        if create:
            # Readers that were killed would block the reuse of their pages.
            self._env.reader_check()
        self._tables: dict[str, Any] = {}
        # Opening a table is a write too, and would deadlock with a write of another thread.
        self._writing = threading.RLock()

    def _opened(self, *, create: bool) -> Any:
        if create:
            with self._checked.opening():
                return self._lmdb(create=True)
        self._checked.check_header()
        env = self._lmdb(create=False)
        try:
            self._checked.check_snapshot(env.begin)
        except BaseException:
            env.close()
            raise
        return env

    def _lmdb(self, *, create: bool) -> Any:
        return lmdb.open(
            str(self.path),
            map_size=MAP_SIZE,
            max_dbs=MAX_TABLES,
            max_readers=MAX_READERS,
            readonly=not create,
            create=create,
            sync=self._durable,
            metasync=self._durable,
            readahead=False,
            meminit=False,
            mode=FILE_MODE,
        )

    def table(self, name: str) -> Any | None:
        """Return the handle of a named table, or None if it does not exist and cannot be created."""
        handle = self._tables.get(name)
        if handle is None:
            try:
                with self._writing, self._checked.writing() if self.writable else nullcontext():
                    handle = self._env.open_db(name.encode(), create=self.writable)
            except (lmdb.NotFoundError, lmdb.ReadonlyError):
                return None
            except (lmdb.Error, PageDamage) as error:
                raise self.translated(error) from error
            self._tables[name] = handle
        return handle

    def table_names(self) -> list[str]:
        return self.read(lambda txn: [key.decode() for key, _ in bounded(txn, iter(txn.cursor()))])

    def read(self, work: Callable[[Any], T]) -> T:
        """Run `work` in a short read transaction."""
        try:
            with naming_machine(f"reading the state at {self.path}"):
                self._checked.detect_changes()
            with self._begin(write=False) as txn:
                return work(txn)
        except (lmdb.Error, PageDamage) as error:
            raise self.translated(error) from error

    def write(self, work: Callable[[Any], T]) -> T:
        """Run `work` in one write transaction, and again in a larger map if this one is full."""
        while True:
            try:
                with self._writing, self._checked.writing(), self._begin(write=True) as txn:
                    return work(txn)
            except lmdb.MapFullError:
                self._env.set_mapsize(self._env.info()["map_size"] * 2)
            except (lmdb.Error, PageDamage) as error:
                raise self.translated(error) from error

    def snapshot(self) -> tuple[Any, dict[str, Any]]:
        """Return a read transaction that the caller ends, and its tables: a transaction sees only those opened before
        it."""
        for name in self.table_names():
            self.table(name)
        return self._begin(write=False), dict(self._tables)

    def _begin(self, *, write: bool) -> Any:
        try:
            return self._env.begin(write=write)
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
            return self._env.begin(write=write)

    def translated(self, error: lmdb.Error | PageDamage) -> StateError:
        if self._closed:
            return EnvironmentClosed(self.path)
        code = getattr(error, "code", 0)
        # LMDB reports a write truncated by a full disk as an I/O error.
        if code in _NO_ROOM or (code == errno.EIO and shutil.disk_usage(self.path).free < _LITTLE_ROOM):
            return StateFull(self.path, str(error))
        if isinstance(error, DAMAGED):
            return StateDamaged(self.path, str(error))
        return StateError(
            f"the state at {self.path} cannot be used: {error}", hint="check the disk and the owner of the files"
        )

    def copy_to(self, directory: Path, look: Callable[[Any], T]) -> T:
        """Write a compact copy of the newest transaction into an existing directory; return what `look` reads in it."""
        try:
            with self._begin(write=False) as txn:
                self._env.copy(str(directory), compact=True, txn=txn)
                return look(txn)
        except lmdb.Error as error:
            raise self.translated(error) from error

    def check_whole(self) -> None:
        """Verify the checksum of every page."""
        try:
            self._checked.check_snapshot(self._env.begin, always=True)
        except (lmdb.Error, PageDamage) as error:
            raise self.translated(error) from error

    def is_there(self) -> bool:
        """Return whether the path still holds the opened files: other processes may have removed or replaced them."""
        return self._file == _file_at(self.path)

    def size_bytes(self) -> int:
        return (self.path / "data.mdb").stat().st_size

    def close(self) -> None:
        self._closed = True
        self._env.close()
        self._checked.close()


def open_environment(path: Path, *, create: bool = True, durable: bool = True) -> Environment:
    """Return the environment at a path: the one that this process has open, or a new one."""
    real = os.path.abspath(path)
    with _guard:
        key = (os.getpid(), real)
        found = _open.get(key)
        if found is not None and ((create and not found.writable) or not found.is_there()):
            found.close()
            found = None
        if found is None:
            _forget_inherited()
            _forget_removed()
            found = _open[key] = Environment(Path(real), create=create, durable=durable)
        return found


def _forget_inherited() -> None:
    """Close the environments of the parent after a fork: LMDB cannot open a path twice. Its locks stay."""
    for key in [key for key in _open if key[0] != os.getpid()]:
        _open.pop(key).close()


def _forget_removed() -> None:
    """Close environments that other processes have removed: they hold descriptors and disk space while open."""
    for key in [key for key, found in _open.items() if not found.is_there()]:
        _open.pop(key).close()


def is_there(path: Path) -> bool:
    """Return whether a shard was ever written: its data file or its checksums exist."""
    return any(os.path.exists(f"{path}/{name}") for name in (DATA_FILE, JOURNAL_FILE))


def close_environment(path: Path) -> None:
    """Close the environment at a path, so that its files can be removed."""
    with _guard:
        found = _open.pop((os.getpid(), os.path.abspath(path)), None)
        if found is not None:
            found.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(f"{path}/data.mdb")
    except OSError:
        return None
    return status.st_dev, status.st_ino
