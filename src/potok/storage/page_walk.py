"""Which pages of a data file are in use: those that a transaction has changed, and all of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np

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
    removed = _freed(file, meta, free)
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
            for first in big_values_of(leaf):
                if not in_use[first]:
                    run = range(first, first + overflow_count(file.page(first)))
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


def _freed(file: PageFile, meta: Meta, leaves: list[Page]) -> Array:
    """The pages that a transaction freed: an entry of the tree of free pages that has the transaction's id. The leaf
    that holds it was written by the transaction too."""
    for leaf in leaves:
        for flags, key, value in reversed(entries_of(leaf)):
            if int.from_bytes(key, "little") == meta.txnid:
                return free_pages(whole_value(file, flags, value))
    return _NONE


def free_pages(value: bytes) -> Array:
    pages = np.frombuffer(value[: len(value) // 8 * 8], "<u8")
    if not len(pages) or int(pages[0]) >= len(pages):
        raise PageDamage("a list of free pages is cut off")
    return pages[1 : 1 + int(pages[0])].astype(np.uint32)


def whole_value(file: PageFile, flags: int, value: bytes) -> bytes:
    """A value, from its own pages where it is large."""
    if not flags & BIG_DATA:
        return value
    first = int.from_bytes(value, "little")
    return file.run(first, overflow_count(file.page(first)))[HEADER.size :]
