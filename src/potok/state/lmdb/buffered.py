"""A table in two trees: a small one for recently written cells, and a large one for the rest.

A batch rewrites every page that holds one of its keys, and among millions of keys each key is on a different page. So
cells are written to the small tree, which is merged into the large one when it is full. A cell in the small tree
hides the one in the large.

Measured on one shard of 2.5 M keys, 50 k of them written: 0.14 to 0.30 s in place, 0.01 to 0.03 s in the small tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from potok.storage.page_format import bounded

FULL = 250_000
"""The small tree is merged into the large one at this many cells."""


def trees_of(table: str) -> tuple[str, str | None]:
    """Return the names of the two trees of a table; indexes, which grow at one end, have only one."""
    return table, None if "/" in table else f"{table}/lately"


class BufferedTable:
    """The handles of the two trees; either may be missing if it was never written."""

    def __init__(self, table: str, open_tree: Callable[[str], Any]) -> None:
        large, small = trees_of(table)
        self._large = open_tree(large)
        self._small = open_tree(small) if small is not None else None

    def get_many(self, txn: Any, keys: Sequence[bytes]) -> list[bytes | None]:
        sizes = [0 if tree is None else txn.stat(tree)["entries"] for tree in (self._small, self._large)]
        if not all(sizes):
            tree = self._small if sizes[0] else self._large
            return _get_all(txn, tree, keys) if any(sizes) else [None] * len(keys)
        if sizes[0] > len(keys):
            get, small, large = txn.get, self._small, self._large
            return [get(key, None, small) or get(key, None, large) for key in keys]
        # Most keys are only in the large tree: reading all of the small one is faster than looking up each key in it.
        with txn.cursor(db=self._small) as small_cursor, txn.cursor(db=self._large) as cursor:
            lately = dict(bounded(txn, small_cursor.iternext(), self._small))
            get = cursor.get
            return [lately.get(key) or get(key) for key in keys]

    def put_many(self, txn: Any, items: list[tuple[bytes, bytes]]) -> None:
        if self._small is not None and txn.stat(self._small)["entries"] > FULL:
            self._merge(txn)
        with txn.cursor(db=self._large if self._small is None else self._small) as cursor:
            cursor.putmulti(items)

    def put_sorted(self, txn: Any, items: list[tuple[bytes, bytes]]) -> None:
        """Write very many cells, in order, to the large tree."""
        if self._small is not None and txn.stat(self._small)["entries"]:
            self._merge(txn)
        with txn.cursor(db=self._large) as cursor:
            cursor.putmulti(items)

    def _merge(self, txn: Any) -> None:
        with txn.cursor(db=self._small) as lately, txn.cursor(db=self._large) as cursor:
            cursor.putmulti(list(bounded(txn, lately.iternext(), self._small)))
        txn.drop(self._small, delete=False)

    def delete(self, txn: Any, key: bytes) -> None:
        """Delete from both trees: a cell in the large one must not reappear."""
        for tree in (self._small, self._large):
            if tree is not None:
                txn.delete(key, db=tree)

    def scan(self, txn: Any, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the cells with start <= key < stop in order; those of the small tree hide those of the large."""
        large, small = (_walk(txn, tree, start, stop) for tree in (self._large, self._small))
        old, new = next(large, None), next(small, None)
        while old is not None or new is not None:
            if new is not None and (old is None or new[0] <= old[0]):
                if old is not None and old[0] == new[0]:
                    old = next(large, None)
                yield new
                new = next(small, None)
            elif old is not None:
                yield old
                old = next(large, None)

    def chunks(self, txn: Any, start: bytes, stop: bytes | None, size: int) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield the cells with start <= key < stop, many at a time: those of the small tree, then those of the large
        one that it does not hide."""
        lately: set[bytes] = set()
        hides = self._large is not None and txn.stat(self._large)["entries"] > 0
        for tree in (self._small, self._large):
            if tree is None:
                continue
            with txn.cursor(db=tree) as cursor:
                rows = _between(txn, cursor, tree, start, stop)
                while chunk := list(islice(rows, size)):
                    if tree is self._small and hides:
                        lately.update(map(itemgetter(0), chunk))
                    elif lately:
                        chunk = [row for row in chunk if row[0] not in lately]
                    yield chunk

    def entries(self, txn: Any) -> int:
        """Count the cells; one that is in both trees counts twice until the merge."""
        return sum(int(txn.stat(tree)["entries"]) for tree in (self._large, self._small) if tree is not None)


def _get_all(txn: Any, tree: Any, keys: Sequence[bytes]) -> list[bytes | None]:
    """Use a cursor, which starts at its last position: keys in order are found in half the time."""
    with txn.cursor(db=tree) as cursor:
        get = cursor.get
        return [get(key) for key in keys]


def _walk(txn: Any, tree: Any, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    if tree is not None:
        with txn.cursor(db=tree) as cursor:
            yield from _between(txn, cursor, tree, start, stop)


def _between(txn: Any, cursor: Any, tree: Any, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    if not cursor.set_range(start):
        return iter(())
    rows = bounded(txn, cursor.iternext(), tree)
    return rows if stop is None else takewhile(lambda row: row[0] < stop, rows)
