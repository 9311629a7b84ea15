"""A directory as object storage, on a file system that several machines share."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from potok.backends.objects.object_client import Listed, ObjectClient, Stored
from potok.backends.state_url import StoreNotWritable, StoreUnreachable
from potok.errors import StateError
from potok.permissions import private_directory, private_opener

_LOCK = ".lock"
_PARTIAL = ".partial-"
_ABANDONED_S = 24 * 3600
"""A partial file of this age was left by a process that died."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_AWAY = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENOTCONN)


class DirectoryClient(ObjectClient):
    """Each object is a file, durable when it is visible.

    A file is created by a link, which fails if the name is taken, and replaced under a lock of the whole directory.
    Its version is a digest of its content.
    """

    def __init__(self, location: str, directory: Path) -> None:
        self.location, self._directory = location, directory

    def get(self, name: str) -> Stored | None:
        with self._naming():
            try:
                data = (self._directory / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
        return Stored(data, _version(data))

    def create(self, name: str, data: bytes) -> str | None:
        path = self._directory / name
        with self._naming(), self._written(path, data) as partial:
            try:
                os.link(partial, path)
            except FileExistsError:
                return None
            _sync_directory(path.parent)
        return _version(data)

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        path = self._directory / name
        with self._naming(), self._locked():
            found = self.get(name)
            if found is None or found.version != version:
                return None
            with self._written(path, data) as partial:
                os.replace(partial, path)
                _sync_directory(path.parent)
        return _version(data)

    def list(self, prefix: str) -> list[Listed]:
        found: list[Listed] = []
        with self._naming():
            for directory, _, files in os.walk(self._directory / prefix):
                for file in files:
                    path = Path(directory, file)
                    with suppress(FileNotFoundError):
                        status = path.stat()
                        if file.startswith(_PARTIAL) and status.st_mtime < time.time() - _ABANDONED_S:
                            path.unlink()
                        if file == _LOCK or file.startswith(_PARTIAL):
                            continue
                        name = path.relative_to(self._directory).as_posix()
                        found.append(Listed(name, status.st_size, status.st_mtime_ns // 1_000_000))
        return sorted(found)

    def delete(self, names: Sequence[str]) -> None:
        with self._naming():
            for name in names:
                path = self._directory / name
                path.unlink(missing_ok=True)
            for parent in {(self._directory / name).parent for name in names}:
                self._remove_empty(parent)

    def _remove_empty(self, directory: Path) -> None:
        """Remove directories without files; another process may be creating one in them."""
        with suppress(OSError):
            while directory != self._directory:
                directory.rmdir()
                directory = directory.parent

    @contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        """Write a file next to its final name, and remove it if it was not renamed."""
        partial = path.with_name(_PARTIAL + secrets.token_hex(8))
        try:
            with self._opened(partial) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def _opened(self, partial: Path) -> BinaryIO:
        while True:
            try:
                return open(partial, "xb", opener=private_opener)
            except FileNotFoundError:
                # Missing, or removed by another process because it was empty.
                private_directory(partial.parent)
                for directory in (partial.parent, *partial.parent.parents):
                    _sync_directory(directory)
                    if directory == self._directory:
                        break

    @contextmanager
    def _locked(self) -> Iterator[None]:
        private_directory(self._directory)
        with open(self._directory / _LOCK, "ab", opener=private_opener) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Convert errors of the operating system into errors of Potok."""
        try:
            yield
        except OSError as error:
            cause = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
            if error.errno in _FULL:
                hint = "free some space there; the batch is repeated until then"
                raise StoreNotWritable(self.location, cause, hint) from error
            if error.errno in _AWAY:
                raise StoreUnreachable(self.location, cause) from error
            hint = "check that the directory is mounted and that this user may write to it"
            raise StateError(f"the objects in {self.location} cannot be used: {cause}", hint=hint) from error


def _version(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
