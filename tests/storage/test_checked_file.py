"""Damage to a data file is detected when it is opened, and when it is used."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from potok.errors import PotokError
from potok.log.embedded.metadata import Metadata
from potok.log.errors import MetadataDamaged
from potok.state.fence import Attempt
from potok.state.lmdb.environment import StateDamaged, close_environment
from potok.state.lmdb.lmdb_store import LmdbSnapshot, LmdbStore
from potok.storage import checked_file
from potok.storage.checksum_journal import Journal
from potok.storage.page_format import PageDamage, PageFile, bounded
from potok.storage.page_inspection import inspect
from tests.storage.shard import build, cells, contents, write_more

PAGE = 4096


def used_pages(directory: Path) -> list[int]:
    file = PageFile(directory)
    found = sorted(inspect(file, file.newest()))
    file.close()
    return found


def flip(path: Path, position: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (old,) = file.read(1)
        file.seek(position)
        file.write(bytes([old ^ 1 << bit]))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("template") / "0"
    build(directory)
    return directory


@pytest.fixture
def shard(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "0")


def test_a_flipped_bit_in_any_page_in_use_is_detected_by_readers_and_writers(shard: Path, tmp_path: Path) -> None:
    chosen = random.Random(1)
    for page in chosen.sample(used_pages(shard), 25):
        copy = shutil.copytree(shard, tmp_path / "copy", dirs_exist_ok=True)
        flip(copy / "data.mdb", page * PAGE + chosen.randrange(PAGE), chosen.randrange(8))
        for use in (contents, write_more):
            with pytest.raises(StateDamaged, match=rf"copy/data.mdb is damaged: page {page} ") as caught:
                use(copy)
            assert "potok state restore BACKUP" in caught.value.hint


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("position", [10, 16, 20, 40, 44, 70, 80, 120, 136, 140, 144, 148])
def test_a_flipped_bit_in_a_meta_page_is_detected(shard: Path, page: int, position: int) -> None:
    flip(shard / "data.mdb", page * PAGE + position, 1)
    for use in (contents, write_more):
        with pytest.raises(StateDamaged, match=r"meta page|is missing"):
            use(shard)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9])
def test_a_truncated_file_is_an_error_and_not_a_signal(shard: Path, share: float) -> None:
    size = (shard / "data.mdb").stat().st_size
    os.truncate(shard / "data.mdb", int(size * share))
    for use in (contents, write_more):
        with pytest.raises(StateDamaged, match=r"data\.mdb is damaged: it (ends before|has)"):
            use(shard)


def test_a_missing_file_with_checksums_is_not_empty_state(shard: Path) -> None:
    (shard / "data.mdb").unlink()
    for use in (contents, write_more):
        with pytest.raises(StateDamaged, match="the file is missing"):
            use(shard)


def test_an_older_copy_of_the_data_alone_is_detected(shard: Path, tmp_path: Path) -> None:
    older = shutil.copy(shard / "data.mdb", tmp_path / "older")
    write_more(shard)
    shutil.copy(older, shard / "data.mdb")
    with pytest.raises(StateDamaged, match="is missing"):
        contents(shard)


def test_a_damaged_unused_page_is_ignored(shard: Path) -> None:
    used, size = used_pages(shard), (shard / "data.mdb").stat().st_size
    right = contents(shard)
    for page in set(range(2, size // PAGE)) - set(used):
        flip(shard / "data.mdb", page * PAGE + 100)
    assert contents(shard) == right


def lost(journal: Path) -> None:
    journal.unlink()


def emptied(journal: Path) -> None:
    os.truncate(journal, 0)


def cut(journal: Path) -> None:
    os.truncate(journal, journal.stat().st_size - 5)


def flipped(journal: Path) -> None:
    flip(journal, journal.stat().st_size // 2)


@pytest.mark.parametrize("spoil", [lost, emptied, cut, flipped])
def test_lost_checksums_are_computed_again(shard: Path, spoil: Callable[[Path], None]) -> None:
    right = contents(shard)
    spoil(shard / "data.sums")
    assert contents(shard) == right
    write_more(shard)
    flip(shard / "data.mdb", used_pages(shard)[0] * PAGE + 30)
    with pytest.raises(StateDamaged):
        contents(shard)


def test_without_checksums_the_structure_is_checked(shard: Path) -> None:
    (shard / "data.sums").unlink()
    flip(shard / "data.mdb", used_pages(shard)[0] * PAGE + 2)
    with pytest.raises(StateDamaged, match="has the number or the kind of another page"):
        contents(shard)


def test_a_commit_without_checksums_is_accepted(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LmdbStore(shard)
    with monkeypatch.context() as killed:
        killed.setattr(Journal, "append", lambda *_: None)
        store.put_many(Attempt(1, 8), [("t", cells(8, [1, 2, 3]))])
    store.close()
    right = contents(shard)
    write_more(shard)
    assert contents(shard) != right
    assert Journal(shard).exists()
    flip(shard / "data.mdb", used_pages(shard)[-1] * PAGE + 30)
    with pytest.raises(StateDamaged):
        contents(shard)


def test_a_full_disk_for_checksums_does_not_fail_the_commit(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    store = LmdbStore(shard)
    with monkeypatch.context() as patch:
        patch.setattr("potok.storage.checksum_journal.os.pwrite", full)
        store.put_many(Attempt(1, 8), [("t", cells(8, [1, 2, 3]))])
        store.put_many(Attempt(1, 9), [("t", cells(9, [1, 2, 3]))])
    store.put_many(Attempt(1, 10), [("t", cells(10, [1, 2, 3]))])
    assert store.attempt() == Attempt(1, 10)
    store.close()
    monkeypatch.setattr(checked_file, "inspect", lambda *_: pytest.fail("the checksums are not up to date"))
    contents(shard)


def test_changes_under_an_open_file_are_detected_by_the_next_read_and_write(shard: Path) -> None:
    store = LmdbStore(shard)
    assert store.entries("t") > 0
    flip(shard / "data.mdb", used_pages(shard)[0] * PAGE + 30)
    with pytest.raises(StateDamaged):
        store.entries("t")
    with pytest.raises(StateDamaged):
        store.put_many(Attempt(1, 8), [("t", cells(8, [1]))])
    close_environment(shard)


def test_a_recently_written_file_is_not_verified_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = tmp_path / "written"
    build(shard)

    def read(*_: object) -> None:
        raise AssertionError("all pages were read")

    monkeypatch.setattr(checked_file, "check_pages", read)
    with LmdbSnapshot(shard) as snapshot:
        assert snapshot.attempt() == Attempt(1, 7)
    close_environment(shard)
    monkeypatch.setattr(checked_file, "TRUSTED_S", 0)
    with pytest.raises(AssertionError, match="all pages were read"):
        LmdbSnapshot(shard)


def test_damaged_metadata_of_the_log_is_reported_with_a_hint(tmp_path: Path) -> None:
    metadata = Metadata.open(tmp_path)
    metadata.write(lambda txn: txn.put(b"a", b"x" * 100))
    metadata.close()
    flip(tmp_path / "data.mdb", used_pages(tmp_path)[-1] * PAGE + 4000)
    with pytest.raises(MetadataDamaged, match=rf"{tmp_path}/data.mdb is damaged: page") as caught:
        Metadata.open(tmp_path)
    assert "restore the whole data directory" in caught.value.hint


def test_truncated_metadata_of_an_open_log_is_an_error_and_not_a_signal(tmp_path: Path) -> None:
    metadata = Metadata.open(tmp_path)
    metadata.write(lambda txn: [txn.put(b"%d" % number, b"x" * 1_000) for number in range(100)])
    os.truncate(tmp_path / "data.mdb", 2 * PAGE)
    with pytest.raises(PotokError, match="ends before page"):
        metadata.read(lambda txn: txn.get(b"50"))
    metadata.close()


def test_a_cyclic_tree_is_an_error() -> None:
    class Transaction:
        def stat(self, tree: object = None) -> dict[str, int]:
            return {"entries": 3}

    endless = itertools.cycle([(b"a", b"1"), (b"b", b"2")])
    with pytest.raises(PageDamage, match="has more entries than its root"):
        list(bounded(Transaction(), endless))
    assert len(list(bounded(Transaction(), iter([(b"a", b"1")] * 3)))) == 3


def test_a_deleted_directory_does_not_affect_processes_that_have_it_open(tmp_path: Path) -> None:
    metadata = Metadata.open(tmp_path / "meta")
    metadata.write(lambda txn: txn.put(b"a", b"1"))
    shutil.rmtree(tmp_path / "meta")
    assert metadata.read(lambda txn: txn.get(b"a")) == b"1"
    metadata.write(lambda txn: txn.put(b"a", b"2"))
    metadata.close()
