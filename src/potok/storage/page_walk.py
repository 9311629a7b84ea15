"""Find the pages that a transaction added and freed. Trusts the file: `page_inspection` validates it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from potok.checksum import crc32
from potok.storage.page_format import (
    BIG_DATA,
    HEADER,
    NO_PAGE,
    Array,
    Meta,
    Page,
    PageDamage,
    PageFile,
    Tree,
    big_values_of,
    children_of,
    named_trees_of,
    overflow_count,
    value_at,
)

_NONE = np.empty(0, np.uint32)
_AT_ONCE = 256


class Change(NamedTuple):
    """How one transaction changed the set of pages in use."""

    added: Array
    sums: Array
    removed: Array


def changed_pages(file: PageFile, meta: Meta, in_use: Array, *, named: bool = True) -> Change:
    """Return the pages that a transaction added, and those that it freed.

    `in_use` marks the pages that the previous transaction reached; such a page, and everything below it, is unchanged.
    `named` says whether there are trees other than the main one.
    """
    walk = _Walk(file, in_use)
    free = walk.add(meta.free, keep=True)
    for page in walk.add(meta.main, keep=named):
        for tree in named_trees_of(page):
            walk.add(tree)
    removed = _freed(file, meta, free)
    return Change(np.array(walk.numbers, np.uint32), np.array(walk.sums, np.uint32), removed)


class _Walk:
    """Collect the new pages of trees with their checksums."""

    def __init__(self, file: PageFile, in_use: Array) -> None:
        self.numbers: list[int] = []
        self.sums: list[int] = []
        self._file = file
        self._in_use = in_use

    def add(self, tree: Tree, *, keep: bool = False) -> list[Page]:
        """Add the pages of a tree. With `keep`, its leaves among them are returned."""
        if tree.root == NO_PAGE or self._in_use[tree.root]:
            return []
        level = [tree.root]
        for _ in range(tree.depth - 1):
            children = np.concatenate([children_of(pages) for pages in self._read(level)])
            level = np.sort(children[~self._in_use[children]]).tolist()
        leaves: list[Page] = []
        large: list[int] = []
        for pages in self._read(level):
            if keep:
                leaves += pages
            if tree.overflow_pages:
                large += [first for leaf in pages for first in big_values_of(leaf) if not self._in_use[first]]
        for first in large:
            count = overflow_count(self._file.page(first))
            for _ in self._read(range(first, first + count)):
                pass
        return leaves

    def _read(self, numbers: Sequence[int]) -> Iterator[list[Page]]:
        """Add pages, which are in order, some at a time; adjacent ones are read with one call."""
        self.numbers += numbers
        size, total = self._file.page_size, len(numbers)
        page_at, run_at = self._file.page, self._file.run
        pages: list[Page] = []
        start = 0
        while start < total:
            first, end = numbers[start], start + 1
            while end < total and numbers[end] == first + end - start < first + _AT_ONCE:
                end += 1
            if end == start + 1:
                pages.append(page_at(first))
            else:
                view = memoryview(run_at(first, end - start))
                pages += [view[at : at + size] for at in range(0, len(view), size)]
            start = end
            if len(pages) >= _AT_ONCE or start == total:
                self.sums += map(crc32, pages)
                yield pages
                pages = []


def _freed(file: PageFile, meta: Meta, leaves: list[Page]) -> Array:
    """Return the pages that a transaction freed: the entry of the tree of free pages with the transaction's id.

    The leaf that holds it was written by the transaction too.
    """
    key = meta.txnid.to_bytes(8, "little")
    for leaf in leaves:
        found = value_at(leaf, key)
        if found is not None:
            return free_pages(whole_value(file, *found))
    return _NONE


def free_pages(value: bytes) -> Array:
    pages = np.frombuffer(value[: len(value) // 8 * 8], "<u8")
    if not len(pages) or int(pages[0]) >= len(pages):
        raise PageDamage("a list of free pages is truncated")
    return pages[1 : 1 + int(pages[0])].astype(np.uint32)


def whole_value(file: PageFile, flags: int, value: bytes) -> bytes:
    """Return a value, reading its overflow pages if it is large."""
    if not flags & BIG_DATA:
        return value
    first = int.from_bytes(value, "little")
    return file.run(first, overflow_count(file.page(first)))[HEADER.size :]
