"""Send arrays of bytes to PostgreSQL in its binary format, without one object per item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from struct import pack

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format

_BYTEA, _BYTEA_ARRAY = 17, 1001


class Blobs:
    """The items of a `bytea[]`."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[bytes]) -> None:
        self.items = items

    def encoded(self) -> bytes:
        """One dimension without nulls, then the length and the bytes of each item."""
        head = pack(">iiiii", 1, 0, _BYTEA, len(self.items), 1) if self.items else pack(">iii", 0, 0, _BYTEA)
        sizes = np.fromiter(map(len, self.items), ">i4", len(self.items)).tobytes()
        lengths: Iterable[bytes] = (sizes[i : i + 4] for i in range(0, len(sizes), 4))
        return head + b"".join(chain.from_iterable(zip(lengths, self.items, strict=True)))


class BlobsDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: Blobs) -> bytes:
        return obj.encoded()
