"""An LMDB data file whose pages are verified before LMDB maps them, with checksums that are updated at each commit.

LMDB trusts its pages: a damaged one can crash the process, make it loop, or hide rows. So the checksum of every page in
use is kept in a journal next to the file. Opening the file compares all of them, at about 1 GB per second, unless the
file has not changed since a commit in the last minutes.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from potok.checksum import crc32
from potok.storage.checksum_journal import Journal, PageSums, Stamp
from potok.storage.page_format import DATA_FILE, META_PAGES, Array, Meta, PageDamage, PageFile
from potok.storage.page_inspection import inspect
from potok.storage.page_walk import changed_pages

TRUSTED_S = 600
"""How long after its last commit an unchanged file is opened without verifying its pages."""

_AT_ONCE = 256


class CheckedFile:
    """Verify the data file of one LMDB environment. Every method may raise `PageDamage`."""

    def __init__(self, directory: Path, *, named: bool = True) -> None:
        """`named` says whether the environment has named trees."""
        self.directory = directory
        self._named = named
        self._path = f"{directory}/{DATA_FILE}"
        self._file: PageFile | None = None
        self._journal = Journal(directory)
        self._sums = PageSums()
        self._mutex = threading.RLock()
        self._lock = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        self._seen: tuple[int, int] = (0, 0)
        self._seen_txnid = -1

    def close(self) -> None:
        with self._mutex:
            self._journal.close()
            if self._file is not None:
                self._file.close()
                self._file = None
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    @contextmanager
    def opening(self, *, always: bool = False) -> Iterator[None]:
        """Block writers and verify the file; open the environment inside. With `always`, verify pages even of an
        unchanged file."""
        with self._locked():
            self._check_whole(always=always)
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit inside; updates the checksums. First detects changes that were not made through LMDB."""
        if self._lock < 0:
            # The environment is closed too, and raises the error.
            yield
            return
        with self._locked():
            status = self._pages().stat()
            if not status.st_nlink:
                # The directory was deleted: there is nothing to protect.
                yield
                return
            self._catch_up(status)
            try:
                yield
            finally:
                self._follow()

    def check_header(self) -> None:
        """Check only the meta pages, which LMDB reads when it opens the file."""
        try:
            self._check_header()
        except PageDamage:
            # A meta page may have been written at the same time.
            with _shared_lock(self.directory):
                self._check_header()

    def check_snapshot(self, begin: Callable[[], Any], *, always: bool = False) -> None:
        """Verify the snapshot of a reader, without blocking writers: pages of an open transaction are not reused."""
        with self._mutex:
            with suppress(PageDamage):
                txn = begin()
                try:
                    if self._checked_at(txn.id(), always=always):
                        return
                finally:
                    txn.abort()
            # The file is damaged, or changed too often. Block writers for the second attempt.
            with _shared_lock(self.directory):
                self._check_newest(always=always)

    def _checked_at(self, txnid: int, *, always: bool) -> bool:
        sums, journal = PageSums(), Journal(self.directory)
        try:
            journal.read(sums, txnid)
        finally:
            journal.close()
        metas = self._pages().metas()
        found = [meta for meta in metas if meta.txnid == txnid]
        if not found or sums.txnid != txnid:
            return False
        self._check(sums, found[-1], metas, always=always)
        return True

    def _check_newest(self, *, always: bool) -> None:
        """Verify the newest transaction; requires that writers are blocked."""
        self._check_header()
        self._journal.read(self._sums)
        metas, meta = self._pages().metas(), self._pages().newest()
        if meta.txnid < self._sums.txnid:
            raise PageDamage(f"transaction {self._sums.txnid} is missing")
        self._check(self._sums, meta, metas, always=always)
        self._remember(meta.txnid)

    def _check_header(self) -> None:
        file, (first, second) = self._pages(), self._pages().metas()
        if max(first.txnid, second.txnid) - min(first.txnid, second.txnid) > 1:
            raise PageDamage("its two meta pages are not of adjacent transactions")
        meta = max(first, second, key=lambda meta: meta.txnid)
        if meta.last_page >= max(file.pages(), 1) * 2 + _AT_ONCE:
            raise PageDamage(f"it has {file.pages()} pages, but its meta page says {meta.last_page + 1}")

    def detect_changes(self) -> None:
        """Detect changes that were not made by a commit; cheap enough for every read."""
        try:
            status = os.fstat(self._file.descriptor) if self._file is not None else None
        except OSError:
            # Another thread has closed the environment, which raises the error itself.
            return
        if status is None or ((status.st_ctime_ns, status.st_size) != self._seen and status.st_nlink):
            self._inspect_changes()

    def _inspect_changes(self) -> None:
        if not self._mutex.acquire(blocking=False):
            return
        try:
            if self._lock < 0:
                return
            with _shared_lock(self.directory, wait=False) as quiet:
                if not quiet:
                    return
                self._journal.read(self._sums)
                meta = self._pages().newest()
                if meta.txnid != self._sums.txnid or self._sums.stamp[:2] != self._stamp()[:2]:
                    self._check_newest(always=True)
                self._remember(meta.txnid)
        finally:
            self._mutex.release()

    def _check_whole(self, *, always: bool = False) -> None:
        self._journal.read(self._sums)
        if not os.path.exists(self._path):
            if self._sums.txnid > 0:
                raise PageDamage("the file is missing")
            return
        if os.stat(self._path).st_size == 0 and self._sums.txnid < 0:
            return
        self._check_header()
        metas, meta = self._pages().metas(), self._pages().newest()
        if meta.txnid < self._sums.txnid:
            raise PageDamage(f"transaction {self._sums.txnid} is missing")
        found = self._check(self._sums, meta, metas, always=always)
        if found is not None:
            self._sums.reset(found, metas, self._stamp())
            self._journal.rewrite(self._sums)
        self._remember(meta.txnid)

    def _check(
        self, sums: PageSums, meta: Meta, metas: tuple[Meta, Meta], *, always: bool = False
    ) -> dict[int, int] | None:
        """Verify the pages of a transaction by their checksums. If these are missing or of an earlier transaction,
        inspect the structure of the file instead, and return new checksums."""
        for other in metas:
            known = sums.metas.get(other.txnid)
            if known is not None and known != (other.sum, other.body_sum):
                raise PageDamage(f"meta page {other.txnid % 2} is not as it was written")
        if sums.txnid == meta.txnid:
            if always or not self._is_trusted(sums.stamp):
                check_pages(self._pages(), sums.pages(), sums.sums)
            return None
        found = inspect(self._pages(), meta)
        if 0 <= sums.txnid == meta.txnid - 1:
            if any(meta.body_sum == body for _, body in sums.metas.values()):
                raise PageDamage(f"meta page {meta.txnid % 2} has the id of another transaction")
            # Pages that the previous transaction used are unchanged, or are gone.
            pages = np.array([page for page in found if page < len(sums.in_use) and sums.in_use[page]], np.uint32)
            check_pages(self._pages(), np.sort(pages), sums.sums)
        return found

    def _is_trusted(self, stamp: Stamp) -> bool:
        age_ns = time.time_ns() - stamp.changed_at_ns
        return stamp.boot != 0 and stamp == self._stamp() and 0 <= age_ns < TRUSTED_S * 1_000_000_000

    def _catch_up(self, status: os.stat_result) -> None:
        """Read the commits of others, and detect changes that were not made through LMDB."""
        if (status.st_ctime_ns, status.st_size) == self._seen and self._sums.txnid == self._seen_txnid >= 0:
            return
        self._journal.read(self._sums)
        txnid = self._pages().newest().txnid
        if self._sums.txnid != txnid or self._sums.stamp[:2] != (status.st_ctime_ns, status.st_size):
            self._check_whole(always=True)
        self._remember(txnid)

    def _follow(self) -> None:
        """Record the pages that a commit changed. The commit is durable even if this fails."""
        try:
            meta = self._pages().meta((self._sums.txnid + 1) % META_PAGES)
            if meta.txnid == self._sums.txnid + 1:
                self._sums.grow(meta.last_page + 1)
                change = changed_pages(self._pages(), meta, self._sums.in_use, named=self._named)
                stamp = self._stamp()
                self._sums.apply(meta.txnid, change, (meta.sum, meta.body_sum), stamp)
                self._journal.append(self._sums, change)
                self._seen, self._seen_txnid = stamp[:2], meta.txnid
            else:
                self._remember(self._sums.txnid)
        except (PageDamage, OSError):
            # The next commit verifies the whole file first.
            self._sums, self._seen_txnid = PageSums(), -1

    def _remember(self, txnid: int) -> None:
        status = self._pages().stat()
        self._seen, self._seen_txnid = (status.st_ctime_ns, status.st_size), txnid

    def _stamp(self) -> Stamp:
        return stamp_of(self._pages())

    def _pages(self) -> PageFile:
        if self._file is None:
            self._file = PageFile(self.directory)
        return self._file

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._mutex:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # A forked child shares the descriptor, so closing it would not release the lock.
                fcntl.flock(self._lock, fcntl.LOCK_UN)


def check_pages(file: PageFile, pages: Array, sums: Array) -> None:
    """Compare pages, in order, with their checksums by number."""
    size, total = file.page_size, len(pages)
    breaks = np.flatnonzero(np.diff(pages.astype(np.int64)) != 1) + 1
    for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), total], strict=True):
        for first in range(start, stop, _AT_ONCE):
            count = min(_AT_ONCE, stop - first)
            if not count:
                continue
            number = int(pages[first])
            view = memoryview(file.run(number, count))
            found = np.array([crc32(view[at : at + size]) for at in range(0, count * size, size)], np.uint32)
            wrong = np.flatnonzero(found != sums[number : number + count])
            if len(wrong):
                page = number + int(wrong[0])
                raise PageDamage(f"page {page} (bytes {page * size} to {(page + 1) * size}) is not as it was written")


@contextmanager
def _shared_lock(directory: Path, *, wait: bool = True) -> Iterator[bool]:
    """Block writers; yield False if one is active and `wait` is false."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if wait else fcntl.LOCK_SH | fcntl.LOCK_NB)
        held = True
    except BlockingIOError:
        held = False
    try:
        yield held
    finally:
        if held:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def stamp_of(file: PageFile) -> Stamp:
    status = file.stat()
    return Stamp(status.st_ctime_ns, status.st_size, boot())


@cache
def boot() -> int:
    """Identify the current boot of the machine; 0 if unknown."""
    try:
        return crc32(Path("/proc/sys/kernel/random/boot_id").read_bytes()) or 1
    except OSError:
        return 0
