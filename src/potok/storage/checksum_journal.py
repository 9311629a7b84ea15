"""The journal of page checksums next to a data file.

A base record lists the pages in use after one transaction; each later record lists the pages that one more transaction
added and removed. The file is appended to after LMDB has committed, without sync: if its end is lost, it ends with
an earlier transaction, and the rest is computed from the pages.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from potok.checksum import crc32
from potok.permissions import FILE_MODE
from potok.storage.page_format import Array, Meta
from potok.storage.page_walk import Change

JOURNAL_FILE = "data.sums"

_HEAD = struct.Struct("<4sI?3xQII8IQQQ")
_MAGIC = b"PSUM"
_CHECKED = 8
"""The checksum of a record covers everything after this position."""

_SMALL = 256 << 10
_GROWTH = 4


class Stamp(NamedTuple):
    """File attributes of the data file after a commit, and the boot of the machine."""

    changed_at_ns: int = 0
    size: int = 0
    boot: int = 0


@dataclass(slots=True)
class PageSums:
    """Which pages are in use after a transaction, and their checksums."""

    txnid: int = -1
    sums: Array = field(default_factory=lambda: np.zeros(1024, np.uint32))
    in_use: Array = field(default_factory=lambda: np.zeros(1024, np.bool_))
    metas: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of the last two transactions: the checksums of their meta pages."""

    stamp: Stamp = field(default_factory=Stamp)

    def apply(self, txnid: int, change: Change, meta: tuple[int, int], stamp: Stamp) -> None:
        self.grow(1 + int(max(change.added.max(initial=0), change.removed.max(initial=0))))
        self.in_use[change.removed] = False
        self.in_use[change.added] = True
        self.sums[change.added] = change.sums
        self.metas = {key: sums for key, sums in self.metas.items() if key >= txnid - 1} | {txnid: meta}
        self.txnid, self.stamp = txnid, stamp

    def grow(self, size: int) -> None:
        """Make room for `size` pages."""
        if size > len(self.sums):
            more = max(size, 2 * len(self.sums)) - len(self.sums)
            self.sums = np.concatenate((self.sums, np.zeros(more, np.uint32)))
            self.in_use = np.concatenate((self.in_use, np.zeros(more, np.bool_)))

    def pages(self) -> Array:
        return np.flatnonzero(self.in_use).astype(np.uint32)

    def reset(self, sums: dict[int, int], metas: tuple[Meta, Meta], stamp: Stamp) -> None:
        """Start again from the checksums of a full inspection."""
        count = len(sums)
        fresh = PageSums()
        newest = max(meta.txnid for meta in metas)
        pages = np.fromiter(sums, np.uint32, count)
        change = Change(pages, np.fromiter(sums.values(), np.uint32, count), np.empty(0, np.uint32))
        fresh.apply(newest, change, (0, 0), stamp)
        fresh.metas = {meta.txnid: (meta.sum, meta.body_sum) for meta in metas}
        for name in ("txnid", "sums", "in_use", "metas", "stamp"):
            setattr(self, name, getattr(fresh, name))


class Journal:
    """Read and extend the file. Extending it requires the lock of the directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / JOURNAL_FILE
        self._descriptor = -1
        self._end = 0
        self._base = 0
        self._unwritten: list[bytes] = []

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def read(self, sums: PageSums, until: int | None = None) -> None:
        """Update the checksums with new records, up to transaction `until`; start over if the file was replaced."""
        if not self._is_current():
            self.close()
            with suppress(FileNotFoundError):
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            self._end = 0
        if self._descriptor < 0:
            return
        size = os.fstat(self._descriptor).st_size
        if size <= self._end:
            return
        data = os.pread(self._descriptor, size - self._end, self._end)
        position = 0
        while (record := _decode(data, position)) is not None:
            if until is not None and record.txnid > until:
                break
            if not record.base and record.txnid != sums.txnid + 1:
                break
            _take(sums, record)
            if record.base:
                self._base = record.length
            position += record.length
        self._end += position

    def _is_current(self) -> bool:
        if self._descriptor < 0:
            return False
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def append(self, sums: PageSums, change: Change) -> None:
        """Append the record of the transaction that `sums` has reached; if the disk is full, with the next one."""
        self._unwritten.append(_encode(sums, change, base=False))
        grown = self._end + sum(map(len, self._unwritten))
        if self._descriptor < 0 or grown > max(_SMALL, _GROWTH * self._base) or len(self._unwritten) > 64:
            self.rewrite(sums)
            return
        data = b"".join(self._unwritten)
        with suppress(OSError):
            size = os.fstat(self._descriptor).st_size
            if size < self._end:
                self.rewrite(sums)
                return
            if size > self._end:
                os.ftruncate(self._descriptor, self._end)
            if os.pwrite(self._descriptor, data, self._end) == len(data):
                self._end += len(data)
                self._unwritten = []

    def rewrite(self, sums: PageSums) -> None:
        """Replace all records with one base record."""
        pages = sums.pages()
        data = _encode(sums, Change(pages, sums.sums[pages], np.empty(0, np.uint32)), base=True)
        temporary = f"{self.path}.new"
        with suppress(OSError):
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
            try:
                if os.pwrite(descriptor, data, 0) != len(data):
                    os.close(descriptor)
                    return
                os.replace(temporary, self.path)
            except OSError:
                os.close(descriptor)
                raise
            self.close()
            self._descriptor, self._end, self._base, self._unwritten = descriptor, len(data), len(data), []


class _Record(NamedTuple):
    base: bool
    txnid: int
    change: Change
    metas: tuple[int, ...]
    stamp: Stamp
    length: int


def _take(sums: PageSums, record: _Record) -> None:
    older, older_sum, older_body, newest_sum, newest_body = record.metas
    if record.base:
        fresh = PageSums()
        sums.sums, sums.in_use, sums.metas = fresh.sums, fresh.in_use, {}
    sums.apply(record.txnid, record.change, (newest_sum, newest_body), record.stamp)
    if record.base:
        sums.metas.setdefault(older, (older_sum, older_body))


def _encode(sums: PageSums, change: Change, *, base: bool) -> bytes:
    newest = sums.metas[sums.txnid]
    older = min(sums.metas)
    metas = (older & 0xFFFFFFFF, older >> 32, *sums.metas[older], *newest, 0, 0)
    body = b"".join(part.astype("<u4").tobytes() for part in change)
    counts = len(change.added), len(change.removed)
    head = _HEAD.pack(_MAGIC, 0, base, sums.txnid, *counts, *metas, *sums.stamp)
    checked = crc32(body, crc32(head[_CHECKED:]))
    return head[:4] + checked.to_bytes(4, "little") + head[_CHECKED:] + body


def _decode(data: bytes, start: int) -> _Record | None:
    """Decode the record at a position; None if it is incomplete or damaged."""
    if len(data) - start < _HEAD.size:
        return None
    magic, checked, base, txnid, added, removed, *rest = _HEAD.unpack_from(data, start)
    length = _HEAD.size + 4 * (2 * added + removed)
    if magic != _MAGIC or len(data) - start < length:
        return None
    if crc32(memoryview(data)[start + _CHECKED : start + length]) != checked:
        return None
    numbers = np.frombuffer(data, "<u4", 2 * added + removed, start + _HEAD.size)
    change = Change(numbers[:added], numbers[added : 2 * added], numbers[2 * added :])
    older = rest[0] | rest[1] << 32
    return _Record(base, txnid, change, (older, *rest[2:6]), Stamp(*rest[8:]), length)
