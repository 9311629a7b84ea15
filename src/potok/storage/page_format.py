"""The pages of an LMDB 0.9 data file, read without LMDB: a damaged page must be found before LMDB follows it.

Pages 0 and 1 are the meta pages of the last two transactions: transaction n is in page n % 2. Every other page is
copied on write and not changed while it is part of a tree, so a page that was reachable before is unchanged.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from potok.checksum import crc32

DATA_FILE = "data.mdb"

HEADER = struct.Struct("<QHHHH")
"""Number, padding, flags, lower and upper bound of the free space; an overflow page has its count in the bounds."""

BRANCH, LEAF, OVERFLOW, META = 0x01, 0x02, 0x04, 0x08
BIG_DATA, SUB_DATA = 0x01, 0x02
NO_PAGE = (1 << 64) - 1
META_PAGES = 2
DEEPEST = 32
"""LMDB's own limit to the height of a tree."""

_NODE = struct.Struct("<HHHH")
"""The fields before the key of a node: its size or page number in two words, flags, and the length of the key."""

_META = struct.Struct("<IIQQ")
_TREE = struct.Struct("<IHHQQQQQ")
_META_PAGE = struct.Struct("<QHHHHIIQQIHHQQQQQIHHQQQQQQQ")
_META_START, _META_END = HEADER.size, _META_PAGE.size
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_PAGE_SIZES = tuple(1 << power for power in range(9, 17))

Array = npt.NDArray[Any]
Page = bytes | memoryview
Entry = tuple[bytes, bytes]


class PageDamage(Exception):
    """What is wrong with a data file. Callers translate it into an error with a hint."""


class Tree(NamedTuple):
    """The root of a tree, and what it should hold."""

    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int

    @classmethod
    def of(cls, data: Page, start: int = 0) -> Tree:
        return cls(*_TREE.unpack_from(data, start)[1:])


class Meta(NamedTuple):
    """One committed transaction."""

    txnid: int
    last_page: int
    free: Tree
    main: Tree
    sum: int
    body_sum: int
    """Checksum without the transaction id, to detect a meta page of which only the id changed."""


class PageFile:
    """Read pages of a data file with `pread`: a truncated file raises an error instead of SIGBUS."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / DATA_FILE
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise PageDamage("the file is missing") from error
        self.page_size = 0

    def close(self) -> None:
        os.close(self.descriptor)

    def metas(self) -> tuple[Meta, Meta]:
        """Both meta pages; the first is that of even transactions."""
        first = os.pread(self.descriptor, _META_END, 0)
        if len(first) < _META_END:
            raise PageDamage(f"it has only {len(first)} bytes, less than a meta page")
        self.page_size = struct.unpack_from("<I", first, _META_START + _META.size)[0]
        if self.page_size not in _PAGE_SIZES:
            raise PageDamage("meta page 0 has an invalid page size")
        return self._meta(first, 0), self.meta(1)

    def newest(self) -> Meta:
        first, second = self.metas()
        return max(first, second, key=lambda meta: meta.txnid)

    def meta(self, number: int) -> Meta:
        """One of the meta pages, once both have been read."""
        return self._meta(os.pread(self.descriptor, _META_END, number * self.page_size), number)

    def _meta(self, page: bytes, number: int) -> Meta:
        if len(page) < _META_END:
            raise PageDamage(f"it ends before meta page {number}")
        fields = _META_PAGE.unpack(page)
        last_page, txnid = fields[-2:]
        right = (number, META, _MAGIC, _VERSION, self.page_size)
        if (fields[0], *fields[2:3], *fields[5:7], fields[9]) != right or (txnid and txnid % META_PAGES != number):
            raise PageDamage(f"meta page {number} is not as LMDB writes it")
        body = crc32(page[_META_START:-8])
        return Meta(txnid, last_page, Tree(*fields[10:17]), Tree(*fields[18:25]), crc32(page[-8:], body), body)

    def page(self, number: int) -> bytes:
        data = os.pread(self.descriptor, self.page_size, number * self.page_size)
        if len(data) != self.page_size:
            raise PageDamage(f"it ends before page {number}")
        return data

    def run(self, number: int, count: int) -> bytes:
        """Adjacent pages."""
        size = count * self.page_size
        data = os.pread(self.descriptor, size, number * self.page_size)
        while len(data) < size:
            more = os.pread(self.descriptor, size - len(data), number * self.page_size + len(data))
            if not more:
                raise PageDamage(f"it ends before page {number + count - 1}")
            data += more
        return data

    def stat(self) -> os.stat_result:
        return os.fstat(self.descriptor)

    def pages(self) -> int:
        """Whole pages in the file."""
        return self.stat().st_size // self.page_size


def nodes_of(page: Page) -> tuple[Array, Array]:
    """The page as 16-bit words, and the word at which each node starts."""
    words = np.frombuffer(page, "<u2")
    return words, words[8 : 8 + (int(words[6]) - HEADER.size >> 1)] >> 1


def children_of(pages: Sequence[Page]) -> Array:
    """Return the children of branch pages. Page numbers are limited to 32 bits (16 TB) instead of LMDB's 48."""
    if len(pages) == 1:
        words, starts = nodes_of(pages[0])
    else:
        # All nodes of all pages at once: one call for ten pages takes as long as for one.
        words = np.frombuffer(b"".join(pages), "<u2")
        begins = np.arange(0, len(words), len(words) // len(pages))
        counts = words[begins + 6].astype(np.int64) - HEADER.size >> 1
        before = np.cumsum(counts) - counts
        indexes = np.arange(int(counts.sum())) + np.repeat(begins + 8 - before, counts)
        starts = (words[indexes] >> 1) + np.repeat(begins, counts)
    numbers: Array = words[starts] | words[starts + 1].astype(np.uint32) << 16
    return numbers


def big_values_of(page: Page) -> list[int]:
    """The first overflow page of each large value that a leaf refers to."""
    words, starts = nodes_of(page)
    if not np.any(words[starts + 2] & BIG_DATA):
        return []
    return [int.from_bytes(value, "little") for flags, _, value in entries_of(page) if flags & BIG_DATA]


def named_trees_of(page: Page) -> list[Tree]:
    """The named trees whose roots a leaf of the main tree holds."""
    found = []
    for start in _starts_of(page):
        _, _, flags, key_size = _NODE.unpack_from(page, start)
        if flags & SUB_DATA:
            found.append(Tree.of(page, start + _NODE.size + key_size))
    return found


def value_at(page: Page, key: bytes) -> tuple[int, bytes] | None:
    """Return flags and value of a key that is likely to be the last of a leaf; for a large value, the number of its
    page."""
    for start in reversed(_starts_of(page)):
        low, high, flags, key_size = _NODE.unpack_from(page, start)
        at = start + _NODE.size + key_size
        if page[at - key_size : at] == key:
            return flags, bytes(page[at : at + (8 if flags & BIG_DATA else low | high << 16)])
    return None


def _starts_of(page: Page) -> tuple[int, ...]:
    """Return the byte at which each node starts: faster than an array if there are few nodes, or only some are
    needed."""
    count = int.from_bytes(page[12:14], "little") - HEADER.size >> 1
    if not 0 <= count <= len(page) - HEADER.size >> 1:
        raise PageDamage("a page has an invalid header")
    return struct.unpack_from(f"<{count}H", page, HEADER.size)


def entries_of(page: Page) -> list[tuple[int, bytes, bytes]]:
    """Flags, key and value of each node of a leaf; of a large value the number of its page."""
    words, starts = nodes_of(page)
    found = []
    for start in starts.tolist():
        low, high, flags, key_size = words[start : start + 4].tolist()
        key = 2 * start + _NODE.size
        size = 8 if flags & BIG_DATA else low | high << 16
        found.append((flags, bytes(page[key : key + key_size]), bytes(page[key + key_size : key + key_size + size])))
    return found


def overflow_count(page: Page) -> int:
    """Return the number of pages of a large value, given its first page."""
    return int.from_bytes(page[12:16], "little")


def bounded(txn: Any, cursor: Iterator[Entry], tree: Any = None) -> Iterator[Entry]:
    """Limit a cursor to the number of entries of its tree: a damaged tree may contain a cycle."""
    most = txn.stat(tree)["entries"] if tree is not None else txn.stat()["entries"]
    return chain(islice(cursor, most), _must_be_over(cursor))


def _must_be_over(cursor: Iterator[Entry]) -> Iterator[Entry]:
    for _ in cursor:
        raise PageDamage("a tree has more entries than its root says")
    yield from ()
