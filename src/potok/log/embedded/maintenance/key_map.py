"""The last offset of each key of a partition, in 24 bytes per key regardless of key length."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_UNMERGED = 1 << 20
"""How many new entries are collected before they are merged."""

NOWHERE = -1


class KeyMap:
    """Keys are identified by a digest of 128 bits, so that they never collide in practice.

    Three arrays, sorted by the first half of the digest; new entries are collected until there are enough to sort.
    """

    def __init__(self) -> None:
        self._first: Words = np.empty(0, np.uint64)
        self._second: Words = np.empty(0, np.uint64)
        self._last: Ints = np.empty(0, np.int64)
        self._waiting: list[tuple[Words, Words, Ints]] = []
        self._unmerged = 0

    def __len__(self) -> int:
        """The maximum number of keys: a new entry may already be known."""
        return len(self._last) + self._unmerged

    def add(self, keys: pa.Array, offsets: Ints) -> None:
        """Add records in offset order, none without a key."""
        encoded = keys.dictionary_encode()
        last = np.empty(len(encoded.dictionary), np.int64)
        last[encoded.indices.to_numpy()] = offsets  # of a repeated key, the last offset stays
        first, second = digests(encoded.dictionary)
        self._waiting.append((first, second, last))
        self._unmerged += len(last)
        if self._unmerged >= max(_UNMERGED, len(self._last) // 2):
            self._merge()

    def last_offsets(self, keys: pa.Array) -> Ints:
        """Return the last offset of each key, NOWHERE for an unknown key."""
        if self._waiting:
            self._merge()
        encoded = keys.dictionary_encode()
        found = self._find(*digests(encoded.dictionary))
        return np.asarray(found[encoded.indices.to_numpy()], np.int64)

    def _find(self, first: Words, second: Words) -> Ints:
        found = np.full(len(first), NOWHERE, np.int64)
        at = np.searchsorted(self._first, first)
        wanted = np.flatnonzero(at < len(self._first))
        while len(wanted):
            here = at[wanted]
            wanted = wanted[self._first[here] == first[wanted]]
            here = at[wanted]
            same = self._second[here] == second[wanted]
            found[wanted[same]] = self._last[here[same]]
            # Digests with the same first half are adjacent, and very rare.
            wanted = wanted[~same]
            at[wanted] += 1
            wanted = wanted[at[wanted] < len(self._first)]
        return found

    def _merge(self) -> None:
        parts = [(self._first, self._second, self._last), *self._waiting]
        first, second, last = (np.concatenate(column) for column in zip(*parts, strict=True))
        # Stable, so that of equal digests the one added last is last.
        order = np.lexsort((second, first))
        first, second, last = first[order], second[order], last[order]
        differs = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        kept = np.append(differs, True)[: len(first)]
        self._first, self._second, self._last = first[kept], second[kept], last[kept]
        self._waiting, self._unmerged = [], 0


def digests(keys: pa.Array) -> tuple[Words, Words]:
    joined = b"".join([blake2b(key, digest_size=16).digest() for key in keys.to_pylist()])
    words = np.frombuffer(joined, np.dtype("<u8")).reshape(-1, 2)
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
