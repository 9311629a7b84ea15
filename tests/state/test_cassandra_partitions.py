"""Buckets of a table in Cassandra: they are split when they grow and dropped when they are empty, unnoticed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from potok.backends.cassandra.connection import Call
from potok.backends.state_url import Where
from potok.state.cassandra import changes, partitions
from potok.state.cassandra.cassandra_store import CassandraStore
from potok.state.cassandra.cells import Cells
from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt
from state.shard import Shard

KEYS = st.integers(0, 60).map(lambda number: b"%02d" % number)


@pytest.fixture
def shard(cassandra_url: str) -> Shard:
    return Shard(Where.of(cassandra_url))


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MOST_CELLS", 8)
    monkeypatch.setattr(changes, "WORTH_COUNTING", 3)


def put(shard: Shard, batch: int, keys: Iterable[bytes], removed: Iterable[bytes] = ()) -> None:
    attempt = Attempt(1, batch)
    rows = [(key, encode_cell(attempt, b"%d" % batch, None)) for key in keys]
    shard.store().put_many(attempt, [("t", rows)] if rows else [], [("t", list(removed))])


def keys_of(shard: Shard) -> list[bytes]:
    return [key for key, _ in shard.store().page("t", limit=1_000)]


def buckets_of(shard: Shard) -> list[bytes]:
    store = shard.store()
    assert isinstance(store, CassandraStore)
    return [bucket.start for bucket in store._current().tables["t"].buckets]


@pytest.mark.usefixtures("small_buckets")
def test_a_large_bucket_is_split_and_read_as_before(shard: Shard) -> None:
    keys = [b"%02d" % number for number in range(60)]
    put(shard, 1, keys)
    assert len(buckets_of(shard)) > 5
    put(shard, 2, keys[::2])
    put(shard, 3, [], keys[30:40])
    left = keys[:30] + keys[40:]
    assert keys_of(shard) == left
    batches = [decode_cell(data).batch for data in shard.store().get_many("t", left) if data is not None]
    assert batches == [2 if int(key) % 2 == 0 else 1 for key in left]
    assert [[key for key, _ in rows] for rows in shard.store().ranges("t", [(b"05", b"45"), (b"58", None)])] == [
        [key for key in left if b"05" <= key < b"45"],
        keys[58:],
    ]
    assert shard.store().entries("t") == len(left)


@pytest.mark.usefixtures("small_buckets")
def test_empty_buckets_at_the_front_are_dropped(shard: Shard) -> None:
    keys = [b"%02d" % number for number in range(60)]
    put(shard, 1, keys)
    before = len(buckets_of(shard))
    store = shard.store()
    rows = store.page("t", b"", b"40", limit=100)
    store.put_many(Attempt(1, 2), [], [("t", [key for key, _ in rows])])
    assert len(buckets_of(shard)) < before / 2
    assert keys_of(shard) == keys[40:]
    put(shard, 3, [b"05"])
    assert keys_of(shard) == [b"05", *keys[40:]]


@pytest.mark.usefixtures("small_buckets")
def test_a_reader_that_knows_the_buckets_from_before_a_split_sees_its_batch(shard: Shard) -> None:
    keys = [b"%02d" % number for number in range(20)]
    put(shard, 1, keys[:8])
    reader = shard.store()
    assert reader.page("t", limit=1)
    put(shard, 2, keys[8:])
    assert len(buckets_of(shard)) > 1
    assert reader.get_many("t", keys[:8]) == shard.store().get_many("t", keys[:8])
    put(shard, 2, keys[8:])
    assert None not in reader.get_many("t", keys[:8]), "a batch that is repeated does not remove what was moved"
    put(shard, 3, keys[:1])
    assert None in reader.get_many("t", keys[:8]), "it is removed once the batch of the split was committed"
    assert None not in shard.store().get_many("t", keys)


class ProcessDied(Exception):
    """The end of a process."""


STEPS = st.lists(
    st.tuples(st.sets(KEYS, max_size=25), st.sets(KEYS, max_size=10), KEYS, st.none() | st.integers(0, 6)), max_size=7
)


@given(steps=STEPS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("small_buckets")
def test_cells_are_those_that_were_written_whatever_is_split_removed_and_interrupted(
    cassandra_url: str, steps: list[tuple[set[bytes], set[bytes], bytes, int | None]]
) -> None:
    shard, expected, real = Shard(Where.of(cassandra_url)), dict[bytes, int](), Cells.execute
    for batch, (written, removed, stop, dies_after) in enumerate(steps, 1):
        for dies in (dies_after, None) if dies_after is not None else (None,):
            left = None if dies is None else iter(range(dies))

            def execute(self: Cells, calls: Iterable[Call], left: Iterable[int] | None = left) -> None:
                for call in calls:
                    if left is not None and next(iter(left), None) is None:
                        raise ProcessDied
                    real(self, [call])

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(Cells, "execute", execute)
                store = shard.store()
                front = [key for key, _ in store.page("t", b"", stop, limit=100)]
                attempt = Attempt(1, batch)
                rows = [(key, encode_cell(attempt, b"", None)) for key in sorted(written)]
                try:
                    store.put_many(attempt, [("t", rows)], [("t", front), ("t", sorted(removed))])
                except ProcessDied:
                    # Of a write that ends early, each part may be there or not, and the rest is repeated.
                    continue
        gone = {key for key in expected if key < stop} | removed
        expected = {key: since for key, since in expected.items() if key not in gone} | dict.fromkeys(written, batch)
    found = shard.store().page("t", limit=1_000)
    assert {key: decode_cell(data).batch for key, data in found} == expected
    assert [key for key, _ in found] == sorted(expected)
    keys = [b"%02d" % number for number in range(61)]
    assert [data is not None for data in shard.store().get_many("t", keys)] == [key in expected for key in keys]
