"""A shard at one instant."""

from __future__ import annotations

import pytest

from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt, Fence
from potok.state.session import StateSession
from state.shard import Shard


def put(shard: Shard, batch: int, key: bytes, value: bytes) -> None:
    session = StateSession(shard.store(), Fence(Attempt(1, batch)))
    session.write("t", [(key, value, session.read("t", [key])[0])])
    session.commit()


def test_a_shard_that_was_never_written_is_empty(shard: Shard) -> None:
    with shard.snapshot() as snapshot:
        assert snapshot.get("t", b"a") is None
        assert list(snapshot.scan("t")) == []


def test_a_missing_table_is_empty(shard: Shard) -> None:
    put(shard, 1, b"a", b"1")
    with shard.snapshot() as snapshot:
        assert snapshot.get("other", b"a") is None
        assert list(snapshot.scan("other")) == []


def test_a_frozen_snapshot_does_not_see_later_writes(shard: Shard) -> None:
    put(shard, 1, b"a", b"1")
    with shard.snapshot() as snapshot:
        put(shard, 2, b"a", b"2")
        put(shard, 2, b"b", b"2")
        data = snapshot.get("t", b"a")
        assert data is not None and decode_cell(data).new == (b"1" if snapshot.frozen else b"2")
        assert [key for key, _ in snapshot.scan("t")] == ([b"a"] if snapshot.frozen else [b"a", b"b"])
        assert snapshot.attempt() == Attempt(1, 1 if snapshot.frozen else 2)


def test_a_snapshot_has_the_tables_and_the_highest_attempt(shard: Shard) -> None:
    with shard.snapshot() as snapshot:
        assert (snapshot.tables(), snapshot.attempt()) == ([], None)
    put(shard, 3, b"a", b"1")
    with shard.snapshot() as snapshot:
        assert (snapshot.tables(), snapshot.attempt()) == (["t"], Attempt(1, 3))


def test_a_long_scan_spans_many_pages(shard: Shard) -> None:
    keys = [b"%05d" % number for number in range(12_345)]
    shard.store().put_many(Attempt(1, 1), [("t", [(key, encode_cell(Attempt(1, 1), key, None)) for key in keys])])
    with shard.snapshot() as snapshot:
        assert [key for key, _ in snapshot.scan("t")] == keys


def test_a_range_includes_its_start_and_excludes_its_stop(shard: Shard) -> None:
    for key in (b"a", b"b", b"c"):
        put(shard, 1, key, b"1")
    with shard.snapshot() as snapshot:
        assert [key for key, _ in snapshot.scan("t", b"a", b"c")] == [b"a", b"b"]
        assert [key for key, _ in snapshot.scan("t", b"bb")] == [b"c"]


@pytest.mark.parametrize("length", [0, 481, 600])
def test_a_long_key_is_found_and_restored(shard: Shard, length: int) -> None:
    put(shard, 1, b"k" * length, b"1")
    with shard.snapshot() as snapshot:
        assert snapshot.get("t", b"k" * length) is not None
        assert [key for key, _ in snapshot.scan("t")] == [b"k" * length]
