"""Which pages of a data file are in use: what a transaction changed, and the whole of a file with its structure checked.

The first is for pages that LMDB wrote just now, and trusts them. The second trusts nothing: it follows no page twice,
no further than the file goes, and looks at each page before it uses what the page says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np

from potok.storage.page_format import (
    BIG_DATA,
    BRANCH,
    DEEPEST,
    DUP_DATA,
    HEADER,
    LEAF,
    META_PAGES,
    NO_PAGE,
    OVERFLOW,
    SUB_DATA,
    Array,
    Meta,
    Page,
    PageDamage,
    PageFile,
    Tree,
    big_values_of,
    children_of,
    entries_of,
    named_trees_of,
    overflow_count,
)


_NONE = np.empty(0, np.uint32)
_AT_ONCE = 256


class Change(NamedTuple):
    """What one transaction did to the pages in use."""

    added: Array
    sums: Array
    removed: Array


def changed_pages(file: PageFile, meta: Meta, in_use: Array, *, named: bool = True) -> Change:
    """The pages of a transaction that were not in use before it, and those that it freed.

    `in_use` tells for every page up to the last which pages the transaction before it reached. Such a page is the same
    as before, and so is everything below it. `named` is whether there are trees other than the main one.
    """
    numbers: list[int] = []
    sums: list[int] = []
    free = _add_tree(file, meta.free, in_use, numbers, sums)
    for page in _add_tree(file, meta.main, in_use, numbers, sums):
        for tree in named_trees_of(page) if named else ():
            _add_tree(file, tree, in_use, numbers, sums)
    removed = _freed(file, meta, free[-1]) if free else _NONE
    return Change(np.array(numbers, np.uint32), np.array(sums, np.uint32), removed)


def _add_tree(file: PageFile, tree: Tree, in_use: Array, numbers: list[int], sums: list[int]) -> list[Page]:
    """Add the pages of a tree that were not in use, and their checksums; its leaves among them."""
    if tree.root == NO_PAGE or in_use[tree.root]:
        return []
    level = [tree.root]
    for _ in range(tree.depth - 1):
        below: list[int] = []
        numbers += level
        for number in level:
            page = file.page(number)
            sums.append(crc32(page))
            children = children_of(page)
            below += children[~in_use[children]].tolist()
        level = below
    leaves: list[Page] = []
    level.sort()
    numbers += level
    for leaf in _read(file, level):
        sums.append(crc32(leaf))
        leaves.append(leaf)
    if tree.overflow_pages:
        for leaf in leaves:
            for first, length in big_values_of(leaf):
                if not in_use[first]:
                    run = range(first, first + overflow_count(length, file.page_size))
                    numbers += run
                    sums += [crc32(file.page(number)) for number in run]
    return leaves


def _read(file: PageFile, numbers: list[int]) -> Iterator[Page]:
    """Pages in order, adjacent ones with one call."""
    size, start = file.page_size, 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1 or end - start == _AT_ONCE:
            if end - start == 1:
                yield file.page(numbers[start])
            else:
                view = memoryview(file.run(numbers[start], end - start))
                for part in range(end - start):
                    yield view[part * size : (part + 1) * size]
            start = end


def _freed(file: PageFile, meta: Meta, leaf: Page) -> Array:
    """The pages that a transaction freed: an entry of the tree of free pages that has the transaction's id."""
    for flags, key, value in reversed(entries_of(leaf)):
        if int.from_bytes(key, "little") == meta.txnid:
            return _free_pages(_whole(file, flags, value))
    return _NONE


def _free_pages(value: bytes) -> Array:
    pages = np.frombuffer(value[: len(value) // 8 * 8], "<u8")
    if not len(pages) or int(pages[0]) >= len(pages):
        raise PageDamage("a list of free pages is cut off")
    return pages[1 : 1 + int(pages[0])].astype(np.uint32)


def _whole(file: PageFile, flags: int, value: bytes) -> bytes:
    """A value, from its own pages where it is large."""
    if not flags & BIG_DATA:
        return value
    first = int.from_bytes(value, "little")
    *_, low, high = HEADER.unpack_from(file.page(first))
    return file.run(first, low | high << 16)[HEADER.size :]


class _Inspection:
    """A walk over all trees of one transaction."""

    def __init__(self, file: PageFile, meta: Meta) -> None:
        self.file, self.meta = file, meta
        self.limit = min(meta.last_page + 1, file.pages())
        self.sums: dict[int, int] = {}
        self.free: set[int] = set()
        self._counts = [0, 0, 0, 0]

    def tree(self, tree: Tree, name: str) -> Iterator[tuple[int, bytes, bytes]]:
        """The entries of a tree, once each of its pages is known to be sound."""
        self._counts = [0, 0, 0, 0]
        if tree.root == NO_PAGE:
            if tree[1:6] != (0, 0, 0, 0, 0):
                raise PageDamage(f"tree {name} has no root, and entries")
            return
        if not 0 < tree.depth <= DEEPEST:
            raise PageDamage(f"tree {name} cannot be {tree.depth} levels high")
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
        children = children_of(page).tolist()
        keys = [key for _, key, _ in _node_keys(page)]
        for place, child in enumerate(children):
            # The key of a branch's first node does not count.
            bound = least if place == 0 else keys[place]
            if place and _rank(bound, by_number) < _rank(least, by_number):
                raise PageDamage(f"branch page {number} is not in order")
            yield from self._below(child, depth - 1, bound, by_number)

    def _leaf(self, number: int, page: bytes, least: bytes, by_number: bool) -> Iterator[tuple[int, bytes, bytes]]:
        for flags, key, value in entries_of(page):
            if not key or (least and _rank(key, by_number) < _rank(least, by_number)):
                raise PageDamage(f"a key of page {number} is not where the page above says")
            if flags & DUP_DATA or flags & ~(BIG_DATA | SUB_DATA) or (flags & SUB_DATA and len(value) != 48):
                raise PageDamage(f"an entry of page {number} is of no kind that is written")
            yield flags, key, value
        for first, length in big_values_of(page):
            head = self._take(first, OVERFLOW)
            count = overflow_count(length, self.file.page_size)
            *_, low, high = HEADER.unpack_from(head)
            if low | high << 16 != count:
                raise PageDamage(f"overflow page {first} does not fit its value")
            self._counts[2] += count
            for part in range(1, count):
                self._take(first + part, 0)

    def _take(self, number: int, kind: int) -> bytes:
        """A page that nothing else refers to, in the form that its place asks for."""
        if not META_PAGES <= number < self.limit:
            raise PageDamage(f"page {number} is outside of the file")
        if number in self.sums or number in self.free:
            raise PageDamage(f"page {number} is in use twice")
        page = self.file.page(number)
        self.sums[number] = crc32(page)
        if kind:
            found, _, flags, lower, upper = HEADER.unpack_from(page)
            if found != number or flags != kind:
                raise PageDamage(f"page {number} is not the page that belongs there")
            if kind != OVERFLOW:
                self._check_nodes(number, page, kind, lower, upper)
        return page

    def _check_nodes(self, number: int, page: bytes, kind: int, lower: int, upper: int) -> None:
        size = len(page)
        least = HEADER.size + 2 * (2 if kind == BRANCH else 1)
        if lower % 2 or not least <= lower <= upper <= size:
            raise PageDamage(f"page {number} has a header that cannot be")
        words = np.frombuffer(page, "<u2")
        starts = words[8 : lower // 2].astype(np.int64)
        if np.any(starts % 2) or np.any(starts < upper) or np.any(starts > size - 8):
            raise PageDamage(f"page {number} refers to bytes outside of it")
        nodes = starts >> 1
        low, high, flags, keys = (words[nodes + part].astype(np.int64) for part in range(4))
        ends = starts + 8 + keys
        if kind == LEAF:
            ends += np.where(flags & BIG_DATA, 8, low | high << 16)
        if np.any(ends > size):
            raise PageDamage(f"page {number} has an entry that does not end in it")


FREE_TREE, MAIN_TREE = "of free pages", "of names"


def inspect(file: PageFile, meta: Meta) -> dict[int, int]:
    """Check the whole structure of a file: the pages in use, and their checksums.

    Whatever a changed byte can do to page numbers, kinds, bounds, order and counts is found. A changed byte in a value,
    or in a key that stays in order, is not: for those there are checksums.
    """
    walk = _Inspection(file, meta)
    roots: list[tuple[str, Tree]] = []
    for flags, _, value in list(walk.tree(meta.free, FREE_TREE)):
        for page in _free_pages(_whole(file, flags, value)).tolist():
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


def _node_keys(page: bytes) -> list[tuple[int, bytes, bytes]]:
    """The nodes of a branch page: only the key means what it means in a leaf."""
    words = np.frombuffer(page, "<u2")
    found = []
    for start in words[8 : int(words[6]) // 2].tolist():
        size = int(words[start // 2 + 3])
        found.append((0, page[start + 8 : start + 8 + size], b""))
    return found


def _rank(key: bytes, by_number: bool) -> bytes | int:
    return int.from_bytes(key, "little") if by_number else key
