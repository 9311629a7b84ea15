"""Changes of several objects of metadata in one transaction, by processes that die or compete."""

from __future__ import annotations

from typing import Any

import pytest

from object_store import FaultyProxy
from potok.backends.objects.object_client import ObjectDamaged
from potok.backends.objects.open import object_client
from potok.backends.state_url import StoreUnreachable, Where
from potok.metadata import object_metadata
from potok.metadata.metadata_store import MetadataConflict
from potok.metadata.object_metadata import ObjectMetadata
from potok.retry_policy import brief_calls

LIVE, SHADOW = "query/live/ledger", "query/shadow/ledger"
BOTH: dict[str, bytes | None] = {LIVE: b"2", SHADOW: None}
BEFORE: dict[str, bytes | None] = {LIVE: b"1", SHADOW: b"1"}


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def where(directory_url: str) -> Where:
    return Where.of(directory_url)


@pytest.fixture
def store(where: Where) -> ObjectMetadata:
    made = ObjectMetadata(where)
    made.set_metadata({LIVE: b"1"})
    made.set_metadata({SHADOW: b"1"})
    return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_metadata, "PATIENCE_S", 0.0)


def die_at(monkeypatch: pytest.MonkeyPatch, wanted: str, nth: int = 1) -> None:
    left = [nth]

    def failpoint(name: str) -> None:
        if name == wanted:
            left[0] -= 1
            if not left[0]:
                raise Died

    monkeypatch.setattr(object_metadata, "failpoint", failpoint)


def values(store: ObjectMetadata) -> tuple[bytes | None, ...]:
    return store.get_metadata_of([LIVE, SHADOW])


def test_several_objects_change_together(store: ObjectMetadata, where: Where) -> None:
    store.set_metadata(BOTH, BEFORE)
    assert values(store) == (b"2", None)
    assert store.list_metadata("query/") == {LIVE: b"2"}
    with pytest.raises(MetadataConflict, match=SHADOW):
        store.set_metadata({LIVE: b"3", SHADOW: b"3"}, {LIVE: b"2", SHADOW: b"other"})
    assert values(store) == (b"2", None)
    assert object_client(where).list("metadata/transactions/") == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_the_change_of_a_process_that_died_counts_as_a_whole_or_not_at_all(
    store: ObjectMetadata, where: Where, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Killed after the first intent, the second one, the commit (with one object moved in), and all of it."""
    with monkeypatch.context() as patched:
        point = "objects.metadata.written" if nth < 3 else "objects.metadata.before"
        die_at(patched, point, nth)
        patched.setattr(ObjectMetadata, "_end", _end_only_if_committed)
        with pytest.raises(Died):
            store.set_metadata(BOTH, BEFORE)
    whole = (b"2", None) if nth >= 3 else (b"1", b"1")
    other = ObjectMetadata(where)
    assert values(other) == whole
    assert other.list_metadata("query/") == ({LIVE: b"2"} if nth >= 3 else {LIVE: b"1", SHADOW: b"1"})
    other.set_metadata({LIVE: b"next"}, {LIVE: whole[0]})
    other.set_metadata({SHADOW: b"next"}, {SHADOW: whole[1]})
    assert values(ObjectMetadata(where)) == (b"next", b"next")
    assert object_client(where).list("metadata/transactions/") == []


_end = ObjectMetadata._end


def _end_only_if_committed(self: ObjectMetadata, *args: Any, committed: bool) -> None:
    """A process that is killed does not clean up."""
    if committed:
        _end(self, *args, committed=committed)


@pytest.mark.usefixtures("impatient")
def test_a_process_whose_transaction_was_aborted_repeats_it(
    store: ObjectMetadata, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, called = ObjectMetadata(where), []

    def failpoint(name: str) -> None:
        if name == "objects.metadata.prepared" and not called:
            called.append(name)
            other.set_metadata({"query/live/progress": b"p"})

    monkeypatch.setattr(object_metadata, "failpoint", failpoint)
    store.set_metadata(BOTH, BEFORE)
    assert called and values(other) == (b"2", None)
    assert other.get_metadata("query/live/progress") == b"p"


def test_the_number_of_objects_does_not_grow_with_changes(store: ObjectMetadata, where: Where) -> None:
    for number in range(20):
        store.set_metadata({LIVE: b"%d" % number})
        store.set_metadata({LIVE: b"x", SHADOW: b"%d" % number})
    assert len(object_client(where).list("metadata/")) == 2


@pytest.mark.parametrize("fault", ["refuse", "reset", "lose"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_requests_that_fail_are_repeated_and_a_change_is_made_once(
    faulty: FaultyProxy, method: str, fault: str
) -> None:
    store = ObjectMetadata(Where.of(faulty.url))
    store.set_metadata({LIVE: b"1"}, {LIVE: None})
    faulty.faults = [(method, fault)]
    store.set_metadata({LIVE: b"2"}, {LIVE: b"1"})
    assert store.get_metadata(LIVE) == b"2"
    faulty.faults = [(method, fault)]
    store.set_metadata({LIVE: b"3", SHADOW: b"3"}, {LIVE: b"2", SHADOW: None})
    assert values(store) == (b"3", b"3")
    assert len(faulty.met) == 2


def test_a_server_that_is_away_is_reported(faulty: FaultyProxy) -> None:
    store = ObjectMetadata(Where.of(faulty.url))
    faulty.faults = [("GET", "refuse")] * 100
    with brief_calls(), pytest.raises(StoreUnreachable) as raised:
        store.get_metadata(LIVE)
    assert raised.value.passing


def test_a_damaged_object_is_named(store: ObjectMetadata, where: Where) -> None:
    client = object_client(where)
    name = "metadata/keys/query%2Flive" if client.get("metadata/keys/query%2Flive") else "metadata/keys/query/live"
    found = client.get(name)
    assert found is not None and client.replace(name, found.data[:20], found.version) is not None
    with pytest.raises(ObjectDamaged, match=name):
        store.get_metadata(LIVE)
