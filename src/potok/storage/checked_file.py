"""An LMDB data file whose pages are checked before LMDB maps them, and whose checksums follow each commit.

LMDB trusts what it reads: a page that is not as it was written can end the process, let it loop, or hide rows. So the
checksum of every page in use stands in a journal beside the file. Whoever opens the file compares all of them, about
1 GB a second, unless the file system says that nobody has changed the file since a commit of the last minutes.
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
"""So long after its last commit a file that nobody has touched is opened without another look at its pages."""

_AT_ONCE = 256


class CheckedFile:
    """Checks the data file in a directory for one LMDB environment. Raises `PageDamage`, or returns."""

    def __init__(self, directory: Path, *, named: bool = True) -> None:
        """`named` is whether the environment has named trees."""
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
        """Hold off writers, check everything, and open the environment inside. With `always`, a recent commit is no
        reason to trust the file."""
        with self._locked():
            self._check_whole(always=always)
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit inside: the checksums follow. What somebody has changed past LMDB meanwhile is found first."""
        if self._lock < 0:
            # The environment is closed too, and says so.
            yield
            return
        with self._locked():
            status = self._pages().stat()
            if not status.st_nlink:
                # The directory was deleted: what is written there is for nobody.
                yield
                return
            self._catch_up(status)
            try:
                yield
            finally:
                self._follow()

    def check_header(self) -> None:
        """Check the meta pages alone, which LMDB reads when it opens the file."""
        try:
            self._check_header()
        except PageDamage:
            # A meta page may have been written meanwhile.
            with _shared_lock(self.directory):
                self._check_header()

    def check_snapshot(self, begin: Callable[[], Any], *, always: bool = False) -> None:
        """Check what a reader can see, while others may write: the pages of its transaction are not written again."""
        with self._mutex:
            with suppress(PageDamage):
                txn = begin()
                try:
                    if self._checked_at(txn.id(), always=always):
                        return
                finally:
                    txn.abort()
            # It may be damaged, or only have changed too often meanwhile: nobody writes during the second look.
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
        """While nobody writes."""
        self._check_header()
        self._journal.read(self._sums)
        metas, meta = self._pages().metas(), self._pages().newest()
        if meta.txnid < self._sums.txnid:
            raise PageDamage(f"transaction {self._sums.txnid} is not in it any more")
        self._check(self._sums, meta, metas, always=always)
        self._remember(meta.txnid)

    def _check_header(self) -> None:
        file, (first, second) = self._pages(), self._pages().metas()
        if max(first.txnid, second.txnid) - min(first.txnid, second.txnid) > 1:
            raise PageDamage("its two meta pages are not of adjacent transactions")
        meta = max(first, second, key=lambda meta: meta.txnid)
        if meta.last_page >= max(file.pages(), 1) * 2 + _AT_ONCE:
            raise PageDamage(f"it has {file.pages()} pages, and its meta page says {meta.last_page + 1}")

    def look(self) -> None:
        """Look whether somebody has changed the file other than by a commit; cheap enough for every read."""
        try:
            status = os.fstat(self._file.descriptor) if self._file is not None else None
        except OSError:
            # Another thread has closed the environment, which says so itself.
            return
        if status is None or ((status.st_ctime_ns, status.st_size) != self._seen and status.st_nlink):
            self._look_closer()

    def _look_closer(self) -> None:
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
            raise PageDamage(f"transaction {self._sums.txnid} is not in it any more")
        found = self._check(self._sums, meta, metas, always=always)
        if found is not None:
            self._sums.reset(found, metas, self._stamp())
            self._journal.rewrite(self._sums)
        self._remember(meta.txnid)

    def _check(
        self, sums: PageSums, meta: Meta, metas: tuple[Meta, Meta], *, always: bool = False
    ) -> dict[int, int] | None:
        """Check the pages of a transaction by their checksums; without these, or with those of an earlier
        transaction, by the structure of the file, which gives the checksums."""
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
                raise PageDamage(f"meta page {meta.txnid % 2} has the number of another transaction")
            # Pages that the transaction before has used too are the same, or are gone.
            pages = np.array([page for page in found if page < len(sums.in_use) and sums.in_use[page]], np.uint32)
            check_pages(self._pages(), np.sort(pages), sums.sums)
        return found

    def _is_trusted(self, stamp: Stamp) -> bool:
        age_ns = time.time_ns() - stamp.changed_at_ns
        return stamp.boot != 0 and stamp == self._stamp() and 0 <= age_ns < TRUSTED_S * 1_000_000_000

    def _catch_up(self, status: os.stat_result) -> None:
        """Others may have committed, or changed the file past LMDB."""
        if (status.st_ctime_ns, status.st_size) == self._seen and self._sums.txnid == self._seen_txnid >= 0:
            return
        self._journal.read(self._sums)
        txnid = self._pages().newest().txnid
        if self._sums.txnid != txnid or self._sums.stamp[:2] != (status.st_ctime_ns, status.st_size):
            self._check_whole(always=True)
        self._remember(txnid)

    def _follow(self) -> None:
        """Note what a commit has changed. It is durable, whatever goes wrong here."""
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
            # The next commit looks at the whole file first.
            self._sums, self._seen_txnid = PageSums(), -1

    def _remember(self, txnid: int) -> None:
        status = self._pages().stat()
        self._seen, self._seen_txnid = (status.st_ctime_ns, status.st_size), txnid

    def _stamp(self) -> Stamp:
        status = self._pages().stat()
        return Stamp(status.st_ctime_ns, status.st_size, _boot())

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
                # A child forked meanwhile shares the open directory; closing alone would leave the lock to it.
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
    """Keep writers away for a moment; False where one is at work and there is no waiting."""
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


@cache
def _boot() -> int:
    """Which run of the machine this is; 0 where it cannot be told."""
    try:
        return crc32(Path("/proc/sys/kernel/random/boot_id").read_bytes()) or 1
    except OSError:
        return 0
