"""Which shard a key lives on."""

from __future__ import annotations

from zlib import crc32

import pyarrow as pa
import pytest

from potok.operators.exchange.shards import key_column, shards_of, split
from potok.records.keys import encode_keys


def test_the_shard_depends_on_the_key_alone() -> None:
    keys = pa.array([b"a", b"b", b"a"], pa.binary())
    assert shards_of(keys, 4).tolist() == [crc32(b"a") % 4, crc32(b"b") % 4, crc32(b"a") % 4]
    assert shards_of(keys, 1).tolist() == [0, 0, 0]


def test_rows_are_split_in_their_order() -> None:
    keys = pa.array([str(n).encode() for n in range(50)], pa.binary())
    parts = dict(split(keys, 3))
    assert sorted(row for rows in parts.values() for row in rows) == list(range(50))
    assert all(list(rows) == sorted(rows) for rows in parts.values())


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["a", "ä"]),
        pa.array([b"a", b""]),
        pa.array([1, -5]),
        pa.array([1.5, -2.0]),
        pa.array([True, False]),
        pa.array([{"a": 1, "b": "x"}]),
        ["text", 1, 2.5, True, (1, "a"), {"a": 1}],
    ],
)
def test_keys_come_back_from_their_bytes(keys: pa.Array) -> None:
    type_ = None if isinstance(keys, list) else keys.type
    back = key_column(encode_keys(keys), type_)
    assert (back if isinstance(back, list) else back.to_pylist()) == (keys if type_ is None else keys.to_pylist())
