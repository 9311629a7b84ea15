"""Snapshots of a shard whose environment another thread opens for writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore
from potok.state.store import SnapshotGone

FIRST = Attempt(1, 1)


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    LmdbStore(tmp_path).put_many(FIRST, [("t", [(b"k", encode_cell(FIRST, b"x", None))])])
    close_environment(tmp_path)
    return tmp_path


def test_a_snapshot_whose_environment_was_closed_before_it_started_is_gone(shard: Path) -> None:
    snapshot = LmdbSnapshot(shard)
    LmdbStore(shard)
    with pytest.raises(SnapshotGone), snapshot:
        pass


def test_a_snapshot_whose_environment_is_closed_while_it_is_read_is_gone(shard: Path) -> None:
    with LmdbSnapshot(shard) as snapshot:
        assert snapshot.get("t", b"k") is not None
        LmdbStore(shard)
        with pytest.raises(SnapshotGone):
            snapshot.get("t", b"k")


def test_a_snapshot_that_is_opened_again_reads_the_cells(shard: Path) -> None:
    LmdbSnapshot(shard)
    LmdbStore(shard)
    with LmdbSnapshot(shard) as snapshot:
        assert [key for key, _ in snapshot.rows("t")] == [b"k"]
