"""The key store: private, shared by processes, and without traces of deleted keys."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest

from potok.errors import SetupError
from potok.events.personal.key_store import KeyStore, KeyStoreUnavailable, UnknownSubject, open_key_store


def traces(directory: Path, key: bytes) -> list[str]:
    return [path.name for path in directory.iterdir() if key in path.read_bytes()]


def test_it_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    store = open_key_store(f"file:{tmp_path}/secure/keys")
    store.for_writing(["ann"], "users")
    assert stat.S_IMODE((tmp_path / "secure" / "keys").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secure" / "keys").iterdir()} == {0o600}


def test_a_subject_keeps_its_key_and_another_has_another(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    first = store.for_writing(["ann", "bob"], "users")
    assert first["ann"] != first["bob"]
    assert store.for_writing(["ann"], "orders") == {"ann": first["ann"]}
    assert store.keys([first["ann"].id, b"\0" * 16]) == {first["ann"].id: first["ann"].key}
    assert store.keys([]) == store.for_writing([], "users") == {}


def test_many_subjects_are_looked_up_at_once(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    names = [f"u{number}" for number in range(1_700)]
    made = store.for_writing(names, "users")
    assert store.for_writing(names, "users") == made
    assert len(store.keys(key.id for key in made.values())) == 1_700


def test_a_deleted_key_leaves_no_trace_in_any_file(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    made = store.for_writing([f"u{number}" for number in range(300)], "users")
    for name in ("u7", "u150", "u299"):
        key = made[name].key
        assert key is not None and traces(tmp_path / "keys", key) != []
        store.forget(name)
        assert traces(tmp_path / "keys", key) == []
        assert store.keys([made[name].id]) == {made[name].id: None}
    assert store.for_writing(["u8"], "users")["u8"] == made["u8"]


def test_what_was_forgotten_stays_forgotten_and_is_announced_until_it_is_done(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    store.for_writing(["ann"], "users")
    store.for_writing(["ann"], "orders")
    due = store.forget("ann")
    assert [(each.topic, each.subject) for each in due] == [("orders", "ann"), ("users", "ann")]
    assert store.forget("ann") == store.unannounced() == due
    store.announced(due[0])
    assert store.unannounced() == due[1:]
    store.announced(due[1])
    assert store.forget("ann") == []
    assert store.for_writing(["ann"], "users")["ann"].key is None


def test_a_subject_without_a_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownSubject, match='nothing was encrypted for subject "nobody"'):
        KeyStore(tmp_path / "keys").forget("nobody")


def test_a_location_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
    for url in ("s3://bucket/keys", "file://host/keys", "redis:keys"):
        with pytest.raises(SetupError, match="is not the location of a key store"):
            open_key_store(url)
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyStoreUnavailable):
        KeyStore(tmp_path / "file").keys([b"id"])


def test_a_damaged_file_is_an_error_and_not_an_empty_store(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    store.for_writing(["ann"], "users")
    (tmp_path / "keys" / "keys.sqlite").write_bytes(b"x" * 8192)
    with pytest.raises(KeyStoreUnavailable, match="not a database"):
        store.for_writing(["ann"], "users")


def _make(path: Path, names: list[str], results: multiprocessing.Queue[dict[str, bytes]]) -> None:
    made = KeyStore(path).for_writing(names, "users")
    results.put({name: key.id for name, key in made.items()})


def test_processes_that_start_together_agree_on_the_keys(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[dict[str, bytes]] = context.Queue()
    names = [f"u{number}" for number in range(40)]
    processes = [context.Process(target=_make, args=(tmp_path / "keys", names, results)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert found[0] == found[1] == found[2] and len(set(found[0].values())) == 40
