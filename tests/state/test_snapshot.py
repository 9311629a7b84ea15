"""A shard as of one instant."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.state.cell import decode_cell
from potok.state.fence import Attempt, Fence
from potok.state.session import StateSession
from potok.state.snapshot import ShardSnapshot
from potok.state.store import ShardStore


def put(path: Path, batch: int, key: bytes, value: bytes) -> None:
    session = StateSession(ShardStore(path), Fence(Attempt(1, batch)))
    session.write("t", [(key, value, session.read("t", [key])[0])])
    session.commit()


def test_a_shard_that_was_never_written_is_empty(tmp_path: Path) -> None:
    with ShardSnapshot(tmp_path) as snapshot:
        assert snapshot.get("t", b"a") is None
        assert list(snapshot.scan("t")) == []


def test_a_table_that_is_not_there_is_empty(tmp_path: Path) -> None:
    put(tmp_path, 1, b"a", b"1")
    with ShardSnapshot(tmp_path) as snapshot:
        assert snapshot.get("other", b"a") is None
        assert list(snapshot.scan("other")) == []


def test_what_is_written_later_is_not_seen(tmp_path: Path) -> None:
    put(tmp_path, 1, b"a", b"1")
    with ShardSnapshot(tmp_path) as snapshot:
        put(tmp_path, 2, b"a", b"2")
        put(tmp_path, 2, b"b", b"2")
        data = snapshot.get("t", b"a")
        assert data is not None and decode_cell(data).new == b"1"
        assert [key for key, _ in snapshot.scan("t")] == [b"a"]


def test_a_range_takes_its_start_and_leaves_its_stop(tmp_path: Path) -> None:
    for key in (b"a", b"b", b"c"):
        put(tmp_path, 1, key, b"1")
    with ShardSnapshot(tmp_path) as snapshot:
        assert [key for key, _ in snapshot.scan("t", b"a", b"c")] == [b"a", b"b"]
        assert [key for key, _ in snapshot.scan("t", b"bb")] == [b"c"]


@pytest.mark.parametrize("length", [0, 481, 600])
def test_a_long_key_is_got_and_told(tmp_path: Path, length: int) -> None:
    put(tmp_path, 1, b"k" * length, b"1")
    with ShardSnapshot(tmp_path) as snapshot:
        assert snapshot.get("t", b"k" * length) is not None
        assert [key for key, _ in snapshot.scan("t")] == [b"k" * length]
