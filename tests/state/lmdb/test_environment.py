"""Errors of LMDB for a full disk and a damaged file."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest

from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.lmdb.environment import StateDamaged, StateFull, close_environment
from potok.state.lmdb.lmdb_store import LmdbStore

DESCRIPTORS = Path("/proc/self/fd")

FIRST, SECOND = Attempt(1, 1), Attempt(1, 2)


def rows(count: int, attempt: Attempt) -> list[tuple[bytes, bytes]]:
    return [(b"%06d" % number, encode_cell(attempt, b"x" * 1_000, None)) for number in range(count)]


def test_a_full_disk_is_reported_and_existing_cells_stay(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path)
    store.put_many(FIRST, [("t", rows(10, FIRST))])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.size_bytes(), before[1]))
    try:
        with pytest.raises(StateFull, match="no space to write the state at") as caught:
            store.put_many(SECOND, [("t", rows(2_000, SECOND))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "free some space and restart the query" in caught.value.hint
    assert (store.entries("t"), store.attempt()) == (10, FIRST)
    store.put_many(SECOND, [("t", rows(20, SECOND))])
    assert (store.entries("t"), store.attempt()) == (20, SECOND)


def test_a_file_that_is_not_state_is_reported_with_a_hint(tmp_path: Path) -> None:
    LmdbStore(tmp_path).put_many(FIRST, [("t", rows(10, FIRST))])
    close_environment(tmp_path)
    file = tmp_path / "data.mdb"
    file.write_bytes(b"\xff" * file.stat().st_size)
    with pytest.raises(StateDamaged, match=str(tmp_path)) as caught:
        LmdbStore(tmp_path)
    assert "potok run PROGRAM --shadow" in caught.value.hint


def test_files_replaced_by_another_process_are_reopened(tmp_path: Path) -> None:
    path = tmp_path / "0"
    LmdbStore(path).put_many(FIRST, [("t", rows(1, FIRST))])
    shutil.rmtree(path)
    assert LmdbStore(path).attempt() is None
    LmdbStore(path).put_many(SECOND, [("t", rows(2, SECOND))])
    assert LmdbStore(path, create=False).entries("t") == 2


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="this system does not list what a process has open")
def test_files_removed_by_another_process_are_closed(tmp_path: Path) -> None:
    for number in range(3):
        LmdbStore(tmp_path / str(number)).put_many(FIRST, [("t", rows(1, FIRST))])
        shutil.rmtree(tmp_path / str(number))
    LmdbStore(tmp_path / "kept")
    opened = {os.readlink(found) for found in DESCRIPTORS.iterdir() if found.is_symlink()}
    here = {found for found in opened if found.startswith(str(tmp_path))}
    assert here
    assert all(found.startswith(str(tmp_path / "kept")) for found in here), here
