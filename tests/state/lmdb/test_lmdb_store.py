"""Cells in LMDB: files that grow, and that can be closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.lmdb.environment import close_environment
from potok.state.lmdb.lmdb_store import LmdbStore

FIRST = Attempt(1, 1)


def test_a_closed_store_can_be_reopened_with_its_cells(tmp_path: Path) -> None:
    LmdbStore(tmp_path).put_many(FIRST, [("t", [(b"a", encode_cell(FIRST, b"1", None))])])
    close_environment(tmp_path)
    assert LmdbStore(tmp_path).entries("t") == 1


def test_a_full_map_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.state.lmdb.environment.MAP_SIZE", 1 << 16)
    store = LmdbStore(tmp_path)
    rows = [(b"%06d" % n, encode_cell(FIRST, b"x" * 100, None)) for n in range(2_000)]
    store.put_many(FIRST, [("t", rows)])
    assert store.entries("t") == len(rows)


def test_the_small_tree_is_not_listed_as_a_table(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path)
    store.put_many(FIRST, [(name, [(b"a", encode_cell(FIRST, b"1", None))]) for name in ("t", "p/lately")])
    assert store.tables() == ["p/lately", "t"]
