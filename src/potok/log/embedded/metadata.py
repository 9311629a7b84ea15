"""The LMDB environment of a log, shared by all threads of a process, safe to grow and safe to fork."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import lmdb

from potok.errors import LogError
from potok.log.errors import BrokerClosed, DiskFull, MetadataDamaged
from potok.machine import naming_machine
from potok.permissions import FILE_MODE, private_directory
from potok.storage.checked_file import CheckedFile
from potok.storage.page_format import DATA_FILE, PageDamage

T = TypeVar("T")
if TYPE_CHECKING:
    Transaction = lmdb.Transaction[bytes]
else:
    Transaction = lmdb.Transaction

DEFAULT_MAP_BYTES = 64 << 20
_DAMAGED = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    PageDamage,
)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_open: dict[Path, Metadata] = {}
_open_lock = threading.Lock()


class Metadata:
    """Runs functions in transactions.

    LMDB allows one environment per file and process, does not survive a fork, and can be resized only while no
    transaction of the process is active. So every transaction passes a gate, which closes for resizes and forks.
    """

    def __init__(self, path: Path, map_bytes: int = DEFAULT_MAP_BYTES) -> None:
        self._path = path
        self._map_bytes = map_bytes
        self._gate = threading.Condition()
        self._active = 0
        self._shut = False
        self._environment: lmdb.Environment | None = None
        self._checked: CheckedFile | None = None
        self._users = 0
        self._file: tuple[int, int] | None = None
        private_directory(path)
        with self._gate:
            self._connect()

    @classmethod
    def open(cls, path: Path, map_bytes: int = DEFAULT_MAP_BYTES) -> Metadata:
        """Open the environment at `path`, once per process; each `open` needs one `close`."""
        path = path.resolve()
        with _open_lock:
            found = _open.get(path)
            if found is None or found._file != _file_at(path):
                found = _open[path] = cls(path, map_bytes)
            found._users += 1
            return found

    def close(self) -> None:
        with _open_lock:
            self._users -= 1
            if self._users != 0:
                return
            if _open.get(self._path) is self:
                del _open[self._path]
        self.shut()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot. It must be short: its pages are not reused meanwhile."""
        while True:
            environment, checked = self._enter()
            try:
                with naming_machine(f"reading the metadata of the log at {self._path}"):
                    checked.detect_changes()
                with environment.begin() as txn:
                    return work(txn)
            except lmdb.MapResizedError:
                pass
            except (lmdb.Error, PageDamage) as error:
                raise self._translated(error, "read") from error
            finally:
                self._leave()
            self._resize(0)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a write transaction and commit it durably. It runs again if the map had to grow."""
        while True:
            environment, checked = self._enter()
            size = 0
            try:
                doing = f"writing the metadata of the log at {self._path}"
                with naming_machine(doing), checked.writing(), environment.begin(write=True) as txn:
                    return work(txn)
            except lmdb.MapFullError:
                size = environment.info()["map_size"] * 2
            except lmdb.MapResizedError:
                pass
            except (lmdb.Error, PageDamage) as error:
                raise self._translated(error) from error
            finally:
                self._leave()
            self._resize(size)

    def verify(self) -> None:
        """Verify the checksum of every page, even of an unchanged file."""
        environment, checked = self._enter()
        try:
            checked.check_snapshot(environment.begin, always=True)
        except (lmdb.Error, PageDamage) as error:
            raise self._translated(error, "read") from error
        finally:
            self._leave()

    def shut(self) -> None:
        """Close the gate and the environment, once no transaction is active."""
        with self._gate:
            while self._shut:
                self._gate.wait()
            self._shut = True
            while self._active:
                self._gate.wait()
            if self._environment is not None:
                self._environment.close()
                self._environment = None
            if self._checked is not None:
                self._checked.close()
                self._checked = None

    def reopen(self, *, forked: bool = False) -> None:
        if forked:
            self._gate = threading.Condition()
        with self._gate:
            self._shut = False
            self._gate.notify_all()

    def _enter(self) -> tuple[lmdb.Environment, CheckedFile]:
        with self._gate:
            while self._shut:
                if self._users <= 0:
                    raise BrokerClosed(str(self._path))
                self._gate.wait()
            environment = self._environment or self._connect()
            assert self._checked is not None
            self._active += 1
            return environment, self._checked

    def _leave(self) -> None:
        with self._gate:
            self._active -= 1
            if self._shut:
                self._gate.notify_all()

    def _connect(self) -> lmdb.Environment:
        checked = CheckedFile(self._path, named=False)
        try:
            with checked.opening():
                self._environment = lmdb.Environment(
                    str(self._path), map_size=self._map_bytes, max_readers=1024, mode=FILE_MODE
                )
        except (lmdb.Error, PageDamage) as error:
            checked.close()
            raise self._translated(error) from error
        self._checked = checked
        self._environment.reader_check()
        self._file = _file_at(self._path)
        return self._environment

    def _resize(self, size: int) -> None:
        """Grow the map to `size`; 0 adopts the size set by another process."""
        with self._gate:
            while self._shut:
                self._gate.wait()
            self._shut = True
            try:
                while self._active:
                    self._gate.wait()
                environment = self._environment or self._connect()
                # Dead readers prevent the reuse of pages.
                environment.reader_check()
                if size == 0 or size > environment.info()["map_size"]:
                    environment.set_mapsize(size)
            finally:
                self._shut = False
                self._gate.notify_all()

    def _translated(self, error: lmdb.Error | PageDamage, what: str = "written") -> LogError:
        if isinstance(error, _DAMAGED):
            return MetadataDamaged(self._path / DATA_FILE, str(error))
        code = getattr(error, "code", 0)
        # LMDB reports a write truncated by a full disk as an I/O error.
        if code in NO_ROOM or (code == errno.EIO and shutil.disk_usage(self._path).free < self._map_bytes):
            return DiskFull(self._path, str(error))
        return LogError(f"the metadata of the log cannot be {what}: {error}", hint=f"check the disk of {self._path}")


def _file_at(path: Path) -> tuple[int, int] | None:
    """Identify the file: a directory that was deleted and recreated is another log under the same path."""
    try:
        status = (path / "data.mdb").stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    _open_lock.acquire()
    for metadata in _open.values():
        metadata.shut()


def _after_fork_in_parent() -> None:
    for metadata in _open.values():
        metadata.reopen()
    _open_lock.release()


def _after_fork_in_child() -> None:
    global _open_lock
    _open_lock = threading.Lock()
    for metadata in _open.values():
        metadata.reopen(forked=True)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
