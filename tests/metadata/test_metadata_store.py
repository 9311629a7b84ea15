"""Marks on servers, changed by compare-and-set."""

from __future__ import annotations

import pickle
import threading
import uuid

import pytest

from potok.backends.state_url import UnknownStore, Where
from potok.metadata.metadata_store import MetadataConflict, MetadataStore
from potok.metadata.open import open_books


@pytest.fixture(params=["redis", "postgres"])
def books(request: pytest.FixtureRequest) -> MetadataStore:
    return open_books(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def name() -> str:
    """A mark that no other test has."""
    return f"query/{uuid.uuid4().hex}/ledger"


def test_what_was_set_is_there_and_what_was_deleted_is_not(books: MetadataStore, name: str) -> None:
    assert books.get_metadata(name) is None
    books.set_metadata({name: b"\x00one", f"{name}2": b""})
    assert (books.get_metadata(name), books.get_metadata(f"{name}2")) == (b"\x00one", b"")
    books.set_metadata({name: None})
    assert (books.get_metadata(name), books.get_metadata(f"{name}2")) == (None, b"")


def test_marks_are_found_by_what_their_names_begin_with(books: MetadataStore, name: str) -> None:
    books.set_metadata({f"{name}/b": b"2", f"{name}/a": b"1", f"{name}%": b"3", f"{name[:-1]}*": b"4"})
    assert books.list_metadata(f"{name}/") == {f"{name}/a": b"1", f"{name}/b": b"2"}
    assert books.list_metadata(f"{name}%") == {f"{name}%": b"3"}
    assert books.list_metadata(f"{name[:-1]}*") == {f"{name[:-1]}*": b"4"}


@pytest.mark.parametrize("expected", [None, b"other", b""])
def test_nothing_changes_where_a_mark_holds_something_else(
    books: MetadataStore, name: str, expected: bytes | None
) -> None:
    books.set_metadata({name: b"one"})
    with pytest.raises(MetadataConflict, match=name):
        books.set_metadata({name: b"two", f"{name}2": b"two"}, {f"{name}2": None, name: expected})
    assert (books.get_metadata(name), books.get_metadata(f"{name}2")) == (b"one", None)


def test_what_is_expected_is_compared_with_all_marks(books: MetadataStore, name: str) -> None:
    books.set_metadata({name: b"one"}, {name: None})
    books.set_metadata({name: b"two", f"{name}2": b"2"}, {name: b"one", f"{name}2": None})
    assert books.get_metadata(name) == b"two"


def test_of_many_that_expect_the_same_one_gets_through(books: MetadataStore, name: str) -> None:
    winners: list[int] = []

    def take(number: int) -> None:
        try:
            books.set_metadata({name: b"%d" % number}, {name: None})
        except MetadataConflict:
            return
        winners.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert books.get_metadata(name) == b"%d" % winners[0]


def test_a_change_that_is_sent_twice_because_its_answer_was_lost_is_made_once(
    books: MetadataStore, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"the same writer!"[:size])
    books.set_metadata({name: b"one"}, {name: None})
    books.set_metadata({name: b"one"}, {name: None})
    assert books.get_metadata(name) == b"one"


def test_books_open_themselves_again_in_another_process(books: MetadataStore, name: str) -> None:
    books.set_metadata({name: b"one"})
    assert pickle.loads(pickle.dumps(books)).get_metadata(name) == b"one"


def test_a_directory_has_no_books_of_its_own(where_of_files: Where) -> None:
    with pytest.raises(UnknownStore):
        open_books(where_of_files)


@pytest.fixture
def where_of_files(tmp_path: str) -> Where:
    return Where.of(str(tmp_path))
