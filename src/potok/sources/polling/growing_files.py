"""Each line that is appended to a file becomes one record, like `tail -F`."""

from __future__ import annotations

import glob
import logging
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

import orjson

from potok.checksum import crc32
from potok.duration import Duration, to_seconds
from potok.errors import PotokError, TopologyError
from potok.log.failpoint import failpoint
from potok.records.log_record import LogRecord
from potok.sources.arrival import Arrival
from potok.sources.counters import TOO_LARGE
from potok.sources.listener import Listener, ListenerContext, ListenerSpec, option

_CHUNK = 1 << 20
_FINGERPRINT = 256

_logger = logging.getLogger("potok.sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingFiles(ListenerSpec):
    """Lines of files that grow and are rotated. Positions are kept in the log, so lines that were written while the
    gateway was down are read when it starts again. A line may be appended twice if the gateway is killed.
    """

    kind: ClassVar[str] = "files"

    path: str = option("A file, or a pattern such as /var/log/app/*.log.")
    start: Literal["earliest", "latest"] = option(
        "Where to start in a file that exists when the listener starts for the first time.", default="earliest"
    )
    poll_interval: Duration = option("How often to look for new lines and files.", default="200 ms")
    max_line: int = option("Maximum size of a line in bytes; a longer one is lost as `too_large`.", default=1 << 20)

    def check(self) -> None:
        ListenerSpec.check(self)
        self.overload.allow(("block",), "a file is read when there is room")
        if self.start not in ("earliest", "latest"):
            raise TopologyError(f'there is no start "{self.start}"', hint='use "earliest" or "latest"')
        if not 1 <= self.max_line <= _CHUNK:
            raise TopologyError(f"max_line = {self.max_line} is out of range", hint=f"write at most {_CHUNK}")
        if to_seconds(self.poll_interval) <= 0:
            raise TopologyError("poll_interval must be longer than 0", hint='write poll_interval = "1 s"')

    def open(self, context: ListenerContext) -> Listener:
        return FileListener(self, context)


class _Identity(NamedTuple):
    """A file, whatever its name."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Identity:
        return cls(status.st_dev, status.st_ino)


class _File:
    """An open file: what was read, and what is durable."""

    def __init__(self, path: Path, file: BinaryIO, position: int) -> None:
        self.path, self.file = path, file
        self.read_to = self.durable_to = position
        self.rest = b""
        self.skipping = False

    def fingerprint(self) -> list[int]:
        """Return the length and the checksum of the beginning: an inode is reused after its file was deleted."""
        return _fingerprint(self.file, min(self.durable_to, _FINGERPRINT))


class FileListener(Listener):
    """One thread that follows all files of a pattern."""

    def __init__(self, spec: GrowingFiles, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._key = f"gateway/{spec.name}/files"
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._files: dict[_Identity, _File] = {}
        self._stored = self._load()
        self._first = not self._stored
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"potok-files-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._context.buffer.close()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        for each in self._files.values():
            each.file.close()

    @property
    def problem(self) -> str | None:
        return self._problem

    def state(self) -> dict[str, Any]:
        with self._lock:
            return {"files": {str(each.path): each.durable_to for each in self._files.values()}}

    def _run(self) -> None:
        pause_s = to_seconds(self._spec.poll_interval)
        while not self._stopping.is_set():
            try:
                self._find()
                read = [self._read(identity, each) for identity, each in list(self._files.items())]
                self._problem = None
            except OSError as error:
                self._problem, read = str(error), []
            if not any(read):
                self._stopping.wait(pause_s)

    def _find(self) -> None:
        """Open files that match the pattern, and those that were renamed since they were read."""
        for name in sorted(glob.glob(self._spec.path)):
            with suppress(FileNotFoundError):
                self._open(Path(name), os.stat(name))
        with self._lock:
            lost_sight_of = [(each, found[0]) for each, found in self._stored.items() if each not in self._files]
        for identity, path in lost_sight_of:
            self._open_renamed(identity, Path(path))
        self._first = False

    def _open_renamed(self, identity: _Identity, path: Path) -> None:
        with suppress(FileNotFoundError), os.scandir(path.parent) as entries:
            for entry in entries:
                if entry.inode() == identity.inode and entry.is_file():
                    self._open(Path(entry.path), entry.stat())
                    break
        if identity not in self._files:
            with self._lock:
                self._stored.pop(identity, None)

    def _open(self, path: Path, status: os.stat_result) -> None:
        identity = _Identity.of(status)
        if identity in self._files:
            self._files[identity].path = path
            return
        file = path.open("rb", buffering=0)
        position = 0
        stored = self._stored.get(identity)
        if stored is not None and _fingerprint(file, stored[2][0]) == stored[2]:
            position = stored[1]
        elif self._first and self._spec.start == "latest":
            position = status.st_size
        with self._lock:
            self._files[identity] = _File(path, file, position)

    def _read(self, identity: _Identity, each: _File) -> bool:
        """Hand over the next lines of a file; return whether there were any."""
        status = os.fstat(each.file.fileno())
        if status.st_size < each.read_to:
            # The file was truncated: what is in it is new.
            each.read_to, each.rest, each.skipping = 0, b"", False
        data = os.pread(each.file.fileno(), _CHUNK, each.read_to)
        if not data:
            self._forget_if_gone(identity, each, status)
            return False
        *lines, rest = (each.rest + data).split(b"\n")
        each.read_to += len(data)
        end = each.read_to - len(rest)
        if each.skipping and lines:
            lines, each.skipping = lines[1:], False
        if len(rest) > self._spec.max_line or each.skipping:
            if not each.skipping:
                self._lose([rest])
            rest, each.skipping, end = b"", True, each.read_to
        each.rest = rest
        self._offer(identity, each, lines, end)
        return True

    def _offer(self, identity: _Identity, each: _File, lines: list[bytes], end: int) -> None:
        lines = [line.removesuffix(b"\r") for line in lines]
        if too_long := [line for line in lines if len(line) > self._spec.max_line]:
            self._lose(too_long)
        records = [LogRecord(None, line) for line in lines if line and len(line) <= self._spec.max_line]

        def done(problem: str | None) -> None:
            if problem is None:
                self._store(identity, each, end)

        if records:
            self._context.buffer.put(Arrival.of(records, done))

    def _lose(self, lines: list[bytes]) -> None:
        self._context.lose(
            [line[: self._spec.max_line] for line in lines], TOO_LARGE, "the line is longer than max_line"
        )

    def _forget_if_gone(self, identity: _Identity, each: _File, status: os.stat_result) -> None:
        """Close a file that was read to its end and is not found under its name any more."""
        with suppress(FileNotFoundError):
            if _Identity.of(os.stat(each.path)) == identity:
                return
        if each.durable_to >= status.st_size - len(each.rest):
            with self._lock:
                del self._files[identity]
                self._stored.pop(identity, None)
            each.file.close()

    def _load(self) -> dict[_Identity, tuple[str, int, list[int]]]:
        data = self._context.broker.get_metadata(self._key)
        if data is None:
            return {}
        return {_Identity(*map(int, name.split(":"))): tuple(found) for name, found in orjson.loads(data).items()}

    def _store(self, identity: _Identity, each: _File, end: int) -> None:
        """Record a position once the lines before it are durable."""
        with self._lock:
            each.durable_to = end
            self._stored[identity] = (str(each.path), end, each.fingerprint())
            found = {f"{key.device}:{key.inode}": value for key, value in self._stored.items()}
        try:
            failpoint("gateway-before-position")
            self._context.broker.set_metadata({self._key: orjson.dumps(found)})
            failpoint("gateway-after-position")
        except PotokError as error:
            # The next position includes this one; until then, a restart reads its lines again.
            _logger.warning('listener "%s": a position was not stored: %s', self._spec.name, error)


def _fingerprint(file: BinaryIO, length: int) -> list[int]:
    return [length, crc32(os.pread(file.fileno(), length, 0))]
