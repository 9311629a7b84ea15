"""Metadata on servers, changed by compare-and-set."""

from __future__ import annotations

import pickle
import threading
import uuid

import pytest

from potok.backends.state_url import UnknownStore, Where
from potok.metadata.metadata_store import MetadataConflict, MetadataStore
from potok.metadata.open import open_metadata


@pytest.fixture(params=["redis", "postgres", "cassandra", "directory", "s3"])
def store(request: pytest.FixtureRequest) -> MetadataStore:
    return open_metadata(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def name() -> str:
    """A metadata key that no other test uses."""
    return f"query/{uuid.uuid4().hex}/ledger"


def test_set_keys_are_found_and_deleted_keys_are_not(store: MetadataStore, name: str) -> None:
    assert store.get_metadata(name) is None
    store.set_metadata({name: b"\x00one", f"{name}2": b""})
    assert (store.get_metadata(name), store.get_metadata(f"{name}2")) == (b"\x00one", b"")
    store.set_metadata({name: None})
    assert (store.get_metadata(name), store.get_metadata(f"{name}2")) == (None, b"")


def test_keys_are_listed_by_prefix(store: MetadataStore, name: str) -> None:
    store.set_metadata({f"{name}/b": b"2", f"{name}/a": b"1", f"{name}%": b"3", f"{name[:-1]}*": b"4"})
    assert store.list_metadata(f"{name}/") == {f"{name}/a": b"1", f"{name}/b": b"2"}
    assert store.list_metadata(f"{name}%") == {f"{name}%": b"3"}
    assert store.list_metadata(f"{name[:-1]}*") == {f"{name[:-1]}*": b"4"}


@pytest.mark.parametrize("expected", [None, b"other", b""])
def test_nothing_changes_if_a_key_does_not_hold_the_expected_value(
    store: MetadataStore, name: str, expected: bytes | None
) -> None:
    store.set_metadata({name: b"one"})
    with pytest.raises(MetadataConflict, match=name):
        store.set_metadata({name: b"two", f"{name}2": b"two"}, {f"{name}2": None, name: expected})
    assert (store.get_metadata(name), store.get_metadata(f"{name}2")) == (b"one", None)


def test_all_expected_values_are_compared(store: MetadataStore, name: str) -> None:
    store.set_metadata({name: b"one"}, {name: None})
    store.set_metadata({name: b"two", f"{name}2": b"2"}, {name: b"one", f"{name}2": None})
    assert store.get_metadata(name) == b"two"


def test_one_of_many_concurrent_changes_succeeds(store: MetadataStore, name: str) -> None:
    winners: list[int] = []

    def take(number: int) -> None:
        try:
            store.set_metadata({name: b"%d" % number}, {name: None})
        except MetadataConflict:
            return
        winners.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert store.get_metadata(name) == b"%d" % winners[0]


def test_a_change_that_is_sent_again_after_a_lost_response_is_made_once(
    store: MetadataStore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"the same writer!"[:size])
    store.set_metadata({name: b"one"}, {name: None})
    store.set_metadata({name: b"one"}, {name: None})
    assert store.get_metadata(name) == b"one"


def test_a_store_can_be_pickled(store: MetadataStore, name: str) -> None:
    store.set_metadata({name: b"one"})
    assert pickle.loads(pickle.dumps(store)).get_metadata(name) == b"one"


def test_a_directory_is_not_a_metadata_store(where_of_files: Where) -> None:
    with pytest.raises(UnknownStore):
        open_metadata(where_of_files)


@pytest.fixture
def where_of_files(tmp_path: str) -> Where:
    return Where.of(str(tmp_path))
