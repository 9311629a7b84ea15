from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.log.partitioner import murmur2, partition_of, partitions_of, split


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_hashes_as_in_kafka(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=250, max_size=300)), min_size=1), st.integers(1, 99)
)
def test_many_keys_are_partitioned_like_single_ones(keys: list[bytes], partitions: int) -> None:
    found = partitions_of(pa.array(keys, pa.binary()), partitions)
    assert list(found) == [partition_of(key, partitions) for key in keys]


def test_a_slice_of_keys_is_hashed_by_its_own_bytes() -> None:
    keys = pa.array([b"a", b"bb", None, b"dddd", b"eeeee"], pa.binary()).slice(1, 4)
    found = partitions_of(keys, 7)
    assert [found[0], found[2], found[3]] == [partition_of(key, 7) for key in (b"bb", b"dddd", b"eeeee")]


def test_records_without_a_key_are_spread_over_all_partitions() -> None:
    found = partitions_of(pa.nulls(4 * 256, pa.binary()), 4)
    assert sorted(set(found.tolist())) == [0, 1, 2, 3]
    one_by_one = {int(partitions_of(pa.nulls(1, pa.binary()), 4)[0]) for _ in range(4)}
    assert one_by_one == {0, 1, 2, 3}


def test_a_split_keeps_the_order_within_each_partition() -> None:
    keys = [b"k%d" % (i % 11) for i in range(500)]
    batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "n": pa.array(range(500))})
    parts = split(batch, 3)
    assert [number for number, _ in parts] == [0, 1, 2]
    for number, part in parts:
        assert part.column("n").to_pylist() == [n for n, key in enumerate(keys) if partition_of(key, 3) == number]


def test_an_empty_batch_splits_into_nothing() -> None:
    assert split(pa.record_batch({"key": pa.array([], pa.binary())}), 3) == []
