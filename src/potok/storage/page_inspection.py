"""Check the structure of a whole data file, if its checksums are missing or those of an older transaction.

The walk trusts nothing: it visits no page twice, stays within the file, and validates each page before it uses its
contents. (`lmdb.verify` does the same, but reports values that were shortened in their own transaction, which keep
more pages than they need, as damage.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from potok.checksum import crc32
from potok.storage.page_format import (
    BIG_DATA,
    BRANCH,
    DEEPEST,
    HEADER,
    LEAF,
    META_PAGES,
    NO_PAGE,
    OVERFLOW,
    SUB_DATA,
    Meta,
    PageDamage,
    PageFile,
    Tree,
    big_values_of,
    children_of,
    entries_of,
    nodes_of,
    overflow_count,
)
from potok.storage.page_walk import free_pages, whole_value

FREE_TREE, MAIN_TREE = "of free pages", "of names"


class _Inspection:
    """A walk over all trees of one transaction."""

    def __init__(self, file: PageFile, meta: Meta) -> None:
        self.file, self.meta = file, meta
        self.limit = min(meta.last_page + 1, file.pages())
        self.sums: dict[int, int] = {}
        self.free: set[int] = set()
        self._counts = [0, 0, 0, 0]

    def tree(self, tree: Tree, name: str) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the entries of a tree after validating their pages."""
        self._counts = [0, 0, 0, 0]
        if tree.root == NO_PAGE:
            if tree[1:6] != (0, 0, 0, 0, 0):
                raise PageDamage(f"tree {name} has entries, but no root")
            return
        if not 0 < tree.depth <= DEEPEST:
            raise PageDamage(f"tree {name} has an invalid depth of {tree.depth}")
        by_number = name == FREE_TREE
        last: bytes | None = None
        for flags, key, value in self._below(tree.root, tree.depth, b"", by_number):
            if last is not None and _rank(key, by_number) <= _rank(last, by_number):
                raise PageDamage(f"tree {name} is not in order")
            last = key
            self._counts[3] += 1
            if self._counts[3] > tree.entries:
                break
            yield flags, key, value
        counts = (tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries)
        if tuple(self._counts) != counts:
            raise PageDamage(f"tree {name} does not hold as many pages and entries as its root says")

    def _below(self, number: int, depth: int, least: bytes, by_number: bool) -> Iterator[tuple[int, bytes, bytes]]:
        page = self._take(number, BRANCH if depth > 1 else LEAF)
        self._counts[0 if depth > 1 else 1] += 1
        if depth == 1:
            yield from self._leaf(number, page, least, by_number)
            return
        children = children_of([page]).tolist()
        keys = _branch_keys(page)
        for index, child in enumerate(children):
            # The first key of a branch page is not used.
            bound = least if index == 0 else keys[index]
            if index and _rank(bound, by_number) < _rank(least, by_number):
                raise PageDamage(f"branch page {number} is not in order")
            yield from self._below(child, depth - 1, bound, by_number)

    def _leaf(self, number: int, page: bytes, least: bytes, by_number: bool) -> Iterator[tuple[int, bytes, bytes]]:
        for flags, key, value in entries_of(page):
            if not key or (least and _rank(key, by_number) < _rank(least, by_number)):
                raise PageDamage(f"a key of page {number} is below the bound of its parent page")
            if flags & ~(BIG_DATA | SUB_DATA) or (flags & SUB_DATA and len(value) != 48):
                raise PageDamage(f"an entry of page {number} has invalid flags")
            yield flags, key, value
        for first, length in _big_values(page):
            count = overflow_count(self._take(first, OVERFLOW))
            # A value that was shortened in the transaction that wrote it keeps its pages.
            if count * self.file.page_size < HEADER.size + length or first + count > self.limit:
                raise PageDamage(f"overflow page {first} does not fit its value")
            self._counts[2] += count
            for part in range(1, count):
                self._take(first + part, 0)

    def _take(self, number: int, kind: int) -> bytes:
        """Read a page, check that it is of this kind, and that nothing else refers to it."""
        if not META_PAGES <= number < self.limit:
            raise PageDamage(f"page {number} is outside the file")
        if number in self.sums or number in self.free:
            raise PageDamage(f"page {number} is in use twice")
        page = self.file.page(number)
        self.sums[number] = crc32(page)
        if kind:
            found, _, flags, lower, upper = HEADER.unpack_from(page)
            if found != number or flags != kind:
                raise PageDamage(f"page {number} has the number or the kind of another page")
            if kind != OVERFLOW:
                self._check_nodes(number, page, kind, lower, upper)
        return page

    def _check_nodes(self, number: int, page: bytes, kind: int, lower: int, upper: int) -> None:
        size = len(page)
        least = HEADER.size + 2 * (2 if kind == BRANCH else 1)
        if lower % 2 or not least <= lower <= upper <= size:
            raise PageDamage(f"page {number} has an invalid header")
        words = np.frombuffer(page, "<u2")
        starts = words[8 : lower // 2].astype(np.int64)
        if np.any(starts % 2) or np.any(starts < upper) or np.any(starts > size - 8):
            raise PageDamage(f"page {number} refers to bytes outside the page")
        nodes = starts >> 1
        low, high, flags, keys = (words[nodes + part].astype(np.int64) for part in range(4))
        ends = starts + 8 + keys
        if kind == LEAF:
            ends += np.where(flags & BIG_DATA, 8, low | high << 16)
        if np.any(ends > size):
            raise PageDamage(f"page {number} has an entry that exceeds the page")


def inspect(file: PageFile, meta: Meta) -> dict[int, int]:
    """Check the whole structure of a file, and return the checksums of the pages in use.

    Detects any damage to page numbers, kinds, bounds, order and counts. It does not detect a changed byte in a value,
    or in a key that stays in order: only checksums do.
    """
    walk = _Inspection(file, meta)
    roots: list[tuple[str, Tree]] = []
    for flags, _, value in list(walk.tree(meta.free, FREE_TREE)):
        for page in free_pages(whole_value(file, flags, value)).tolist():
            if not META_PAGES <= page <= meta.last_page or page in walk.free or page in walk.sums:
                raise PageDamage(f"page {page} cannot be free")
            walk.free.add(page)
    for flags, key, value in walk.tree(meta.main, MAIN_TREE):
        if flags & SUB_DATA:
            roots.append((repr(key)[1:], Tree.of(value)))
    for name, tree in roots:
        _exhaust(walk.tree(tree, name))
    if len(walk.sums) + len(walk.free) != meta.last_page + 1 - META_PAGES:
        raise PageDamage("some of its pages are neither free nor in use")
    return walk.sums


def _exhaust(entries: Iterable[object]) -> None:
    for _ in entries:
        pass


def _big_values(page: bytes) -> list[tuple[int, int]]:
    """First page and length of each large value of a leaf."""
    words, starts = nodes_of(page)
    big = starts[words[starts + 2] & BIG_DATA != 0]
    lengths = words[big] | words[big + 1].astype(np.uint32) << 16
    return list(zip(big_values_of(page), lengths.tolist(), strict=True))


def _branch_keys(page: bytes) -> list[bytes]:
    words, starts = nodes_of(page)
    sizes = words[starts + 3].tolist()
    return [page[2 * start + 8 : 2 * start + 8 + size] for start, size in zip(starts.tolist(), sizes, strict=True)]


def _rank(key: bytes, by_number: bool) -> bytes:
    """Return the sort key; keys of the tree of free pages are little-endian numbers."""
    return key[::-1] if by_number else key
