"""The shard of a key, and splitting rows by shard."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.checksum import crc32
from potok.operators.core.chunk import Column
from potok.records.keys import decode_keys


def shards_of(keys: pa.Array, shards: int) -> npt.NDArray[np.int64]:
    """Return crc32 of the canonical key bytes, so that the shard depends on the key alone."""
    if shards == 1:
        return np.zeros(len(keys), np.int64)
    return np.fromiter(map(crc32, keys.to_pylist()), np.int64, len(keys)) % shards


def split(keys: pa.Array, shards: int) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield the rows of each shard that has any, in their order."""
    home = shards_of(keys, shards)
    for shard in np.unique(home):
        yield int(shard), np.flatnonzero(home == shard)


def key_column(keys: pa.Array, type_: pa.DataType | None) -> Column:
    """Convert canonical key bytes back to the keys of a stream."""
    if type_ is None:
        return decode_keys(keys.to_pylist(), None)
    if pa.types.is_string(type_):
        return keys.cast(pa.string())
    if pa.types.is_binary(type_):
        return keys
    return pa.array(decode_keys(keys.to_pylist(), type_), type_)
