"""Which pages of a data file are in use: those that a transaction has changed, and all of a file."""

from __future__ import annotations

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
    level.sort()
    numbers += level
    leaves = _read(file, level)
    sums += map(crc32, leaves)
    if tree.overflow_pages:
        for leaf in leaves:
            for first in big_values_of(leaf):
                if not in_use[first]:
                    run = range(first, first + overflow_count(file.page(first)))
                    numbers += run
                    sums += [crc32(file.page(number)) for number in run]
    return leaves


def _read(file: PageFile, numbers: list[int]) -> list[Page]:
    """Pages in order, adjacent ones with one call."""
    pages: list[Page] = []
    size, start, total = file.page_size, 0, len(numbers)
    while start < total:
        first, end = numbers[start], start + 1
        while end < total and numbers[end] == first + end - start < first + _AT_ONCE:
            end += 1
        if end == start + 1:
            pages.append(file.page(first))
        else:
            view = memoryview(file.run(first, end - start))
            pages += [view[at : at + size] for at in range(0, len(view), size)]
        start = end
    return pages


def _freed(file: PageFile, meta: Meta, leaves: list[Page]) -> Array:
    """The pages that a transaction freed: an entry of the tree of free pages that has the transaction's id. The leaf
    that holds it was written by the transaction too."""
    key = meta.txnid.to_bytes(8, "little")
    for leaf in leaves:
        found = value_at(leaf, key)
        if found is not None:
            return free_pages(whole_value(file, *found))
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
