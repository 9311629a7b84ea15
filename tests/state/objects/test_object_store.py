"""The chain of deltas of a shard: writers that compete, requests that fail, and objects that are missing."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from object_store import FaultyProxy
from potok.backends.objects.object_client import ObjectDamaged, ObjectMissing
from potok.backends.objects.open import object_client
from potok.backends.state_url import StoreNotReady, StoreUnreachable, Where
from potok.retry_policy import brief_calls
from potok.state.cell import encode_cell
from potok.state.fence import Attempt, StaleAttempt
from potok.state.objects import object_store
from potok.state.objects.chain import Chain
from potok.state.objects.object_store import Named, ObjectStore
from potok.state.open import open_objects, open_snapshot, open_snapshots
from potok.state.store import SnapshotGone


class Machine:
    """A machine with a disk of its own, on which a process opens one shard."""

    def __init__(self, url: str, disk: Path) -> None:
        self.url, self.disk = url, disk

    def open(self, position: str | None = None, attempt: Attempt | None = None) -> ObjectStore:
        named = Named(attempt, {} if position is None else {0: position})
        return open_objects(self.url, "q", 0, named=named, copies=str(self.disk))


@pytest.fixture(params=["directory_url", "s3_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def machines(url: str, tmp_path: Path) -> list[Machine]:
    return [Machine(url, tmp_path / name) for name in ("one", "two", "three")]


def put(store: ObjectStore, attempt: Attempt, **values: bytes) -> str:
    rows = [(key.encode(), encode_cell(attempt, value, None)) for key, value in sorted(values.items())]
    store.put_many(attempt, [("t", rows)])
    assert store.position is not None
    return store.position


def values(store: ObjectStore) -> dict[str, bytes | None]:
    return {key.decode(): cell.new for key, cell in store.scan("t")}


def test_an_idle_writer_learns_of_later_attempts_and_is_rejected(machines: list[Machine]) -> None:
    one, two = machines[0].open(), machines[1].open()
    position = put(one, Attempt(1, 1), a=b"1")
    assert values(two) == {"a": b"1"}
    put(two, Attempt(2, 2), a=b"2")
    with pytest.raises(StaleAttempt, match="batch 2 of start 2"):
        put(one, Attempt(1, 2), a=b"zombie")
    assert values(one) == {"a": b"2"}
    assert values(machines[2].open(position)) == {"a": b"1"}


def test_writers_of_one_attempt_on_two_machines_both_count(machines: list[Machine]) -> None:
    """As the levels of a batch do, in whichever order they run."""
    first = put(machines[0].open(), Attempt(1, 1), a=b"1")
    one, two = machines[0].open(first), machines[1].open(first)
    assert values(two) == {"a": b"1"}
    put(one, Attempt(1, 2), b=b"2")
    last = put(two, Attempt(1, 2), c=b"3")
    assert values(machines[2].open(last)) == {"a": b"1", "b": b"2", "c": b"3"}


def test_a_copy_that_is_behind_reads_only_what_it_lacks(machines: list[Machine]) -> None:
    position = put(machines[0].open(), Attempt(1, 1), **{f"k{n}": b"x" * 50 for n in range(500)})
    two = machines[1].open(position)
    assert len(values(two)) == 500
    for batch in range(2, 5):
        position = put(machines[0].open(position), Attempt(1, batch), a=b"%d" % batch)
    behind = machines[1].open(position, Attempt(1, 4))
    assert values(behind)["a"] == b"4"
    assert (behind.requests.gets, behind.requests.lists) == (3, 0)
    again = machines[1].open(position, Attempt(1, 4))
    assert values(again)["a"] == b"4"
    assert again.requests.gets == 0


def test_an_attempt_without_writes_sends_nothing_and_fences_through_the_ledger(machines: list[Machine]) -> None:
    position = put(machines[0].open(), Attempt(1, 1), a=b"1")
    store = machines[0].open(position)
    store.put_many(Attempt(3, 1), [])
    assert (store.position, store.requests.puts) == (position, 0)
    elsewhere = machines[1].open(position, Attempt(3, 1))
    assert elsewhere.attempt() == Attempt(3, 1)
    with pytest.raises(StaleAttempt):
        put(elsewhere, Attempt(2, 9), a=b"zombie")


@pytest.fixture
def snapshots_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "MOST_DELTAS", 5)
    monkeypatch.setattr(object_store, "FOLLOWED", 3)


@pytest.mark.usefixtures("snapshots_soon")
def test_snapshots_bound_the_number_of_objects_and_restore_the_shard(
    machines: list[Machine], caplog: pytest.LogCaptureFixture
) -> None:
    position, counts = put(machines[0].open(), Attempt(1, 1), a=b"1"), []
    client = object_client(Where.of(machines[0].url))
    for batch in range(2, 40):
        position = put(machines[0].open(position), Attempt(1, batch), **{f"k{batch % 9}": b"%d" % batch})
        counts.append(len(client.list("queries/")))
    assert max(counts) <= 18
    caplog.set_level(logging.INFO)
    restored = machines[1].open(position)
    assert values(restored) == values(machines[0].open(position))
    assert "restored" in caplog.text
    put(restored, Attempt(1, 40), a=b"40")


@pytest.mark.usefixtures("snapshots_soon")
def test_a_driver_that_comes_back_after_collection_cannot_mislead_a_copy(machines: list[Machine]) -> None:
    """It creates a delta whose number is free again. Nobody follows it."""
    position = put(machines[0].open(), Attempt(1, 1), a=b"1")
    paused = machines[1].open(position)
    assert values(paused) == {"a": b"1"}
    reader = machines[2].open(position)
    assert values(reader) == {"a": b"1"}
    for batch in range(2, 20):
        position = put(machines[0].open(position), Attempt(2, batch), a=b"%d" % batch)
    client = object_client(Where.of(machines[0].url))
    assert not any(found.name.endswith("delta/0000000000000002") for found in client.list("queries/"))
    put(paused, Attempt(1, 2), a=b"zombie")
    assert values(machines[2].open(position)) == {"a": b"19"}
    assert values(machines[1].open(position)) == {"a": b"19"}


def test_a_query_that_was_removed_and_created_again_does_not_see_old_copies(machines: list[Machine]) -> None:
    for batch in range(1, 4):
        put(machines[0].open(), Attempt(1, batch), a=b"old")
    machines[1].open().clear()
    position = put(machines[1].open(), Attempt(1, 1), b=b"new")
    assert values(machines[0].open(position)) == {"b": b"new"}


@pytest.mark.usefixtures("snapshots_soon")
@pytest.mark.parametrize("what", ["delta", "manifest", "part"])
@pytest.mark.parametrize("damage", [None, b"", b"PDL1 garbage"])
def test_missing_and_damaged_objects_are_named(machines: list[Machine], what: str, damage: bytes | None) -> None:
    position = put(machines[0].open(), Attempt(1, 1), a=b"1")
    for batch in range(2, 14):
        position = put(machines[0].open(position), Attempt(1, batch), a=b"%d" % batch)
    client = object_client(Where.of(machines[0].url))
    names = [found.name for found in client.list("queries/")]
    kinds = {
        "delta": [name for name in names if "/delta/" in name][-1:],
        "manifest": [name for name in names if name.endswith("/manifest")],
        "part": [name for name in names if "/snapshot/" in name and not name.endswith("/manifest")],
    }
    client.delete(kinds[what])
    for name in kinds[what] if damage is not None else ():
        assert client.create(name, damage or b"") is not None
    with pytest.raises(ObjectMissing if damage is None else ObjectDamaged, match=kinds[what][-1]) as raised:
        values(machines[1].open(position))
    assert "potok run PROGRAM --shadow" in raised.value.hint
    assert values(machines[0].open(position)) == {"a": b"13"}


@pytest.mark.parametrize("fault", ["refuse", "reset", "lose"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_request_that_fails_a_few_times_is_repeated(
    faulty: FaultyProxy, tmp_path: Path, method: str, fault: str
) -> None:
    machine, other = Machine(faulty.url, tmp_path / "one"), tmp_path / "two"
    position = put(machine.open(), Attempt(1, 1), a=b"1")
    faulty.faults = [(method, fault)] * 2
    position = put(machine.open(position), Attempt(1, 2), a=b"2")
    assert values(Machine(machine.url, other).open(position)) == {"a": b"2"}
    assert faulty.met == [(method, fault)] * 2
    assert machine.open().position == position


def test_a_write_whose_acknowledgements_are_all_lost_is_recognised_when_the_batch_is_repeated(
    faulty: FaultyProxy, tmp_path: Path
) -> None:
    machine = Machine(faulty.url, tmp_path / "one")
    position = put(machine.open(), Attempt(1, 1), a=b"1")
    faulty.faults = [("PUT", "lose")] + [("PUT", "refuse")] * 50
    with brief_calls(), pytest.raises(StoreUnreachable):
        put(machine.open(position), Attempt(1, 2), a=b"2")
    faulty.faults = []
    store = machine.open(position)
    last = put(store, Attempt(1, 2), a=b"2")
    assert last.startswith("0000000000000002:"), "no second delta"
    assert values(Machine(machine.url, tmp_path / "two").open(last)) == {"a": b"2"}


@pytest.mark.parametrize("is_open", [False, True])
def test_a_damaged_copy_is_restored(machines: list[Machine], is_open: bool) -> None:
    position = put(machines[0].open(), Attempt(1, 1), **{f"k{n}": b"x" * 100 for n in range(2_000)})
    store = machines[0].open(position)
    (file,) = store.local_path().glob("data.mdb")
    if not is_open:
        store.close()
    data = bytearray(file.read_bytes())
    data[4096 * 20 : 4096 * 40] = b"\x00" * 4096 * 20
    file.write_bytes(data)
    if is_open:
        with pytest.raises(StoreNotReady, match="is damaged") as raised:
            values(store)
        assert raised.value.passing
    assert len(values(machines[0].open(position))) == 2_000


def test_the_end_of_a_chain_does_not_depend_on_a_listing_that_is_late(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(1, 6):
        put(machines[0].open(), Attempt(1, batch), a=b"%d" % batch)
    monkeypatch.setattr(Chain, "newest", lambda _: 2)
    assert values(machines[1].open()) == {"a": b"5"}
    monkeypatch.setattr(Chain, "newest", lambda _: 0)
    assert values(machines[1].open()) == {"a": b"5"}


def test_a_copy_that_another_process_replaces_while_it_is_opened_is_not_taken_for_an_empty_shard(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    position = put(machines[0].open(), Attempt(1, 1), a=b"1")
    replace, replaced = os.replace, list[Path]()

    def replaced_at_once(source: Path, target: Path) -> None:
        """As another process does that restores the same shard: it removes the copy that it finds."""
        replace(source, target)
        if target.name == "current" and not replaced:
            replaced.append(target.parent / target.read_text().split(" ")[0])
            shutil.rmtree(replaced[0])

    monkeypatch.setattr(os, "replace", replaced_at_once)
    store = machines[1].open(position, Attempt(1, 1))
    assert values(store) == {"a": b"1"}
    assert replaced
    assert put(store, Attempt(1, 2), b=b"2") > position
    assert values(machines[2].open(store.position)) == {"a": b"1", "b": b"2"}


def test_a_snapshot_of_a_copy_that_another_process_has_replaced_is_not_empty(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    position = put(machines[0].open(), Attempt(1, 1), a=b"1")
    named = Named(Attempt(1, 1), {0: position})

    def removed(store: ObjectStore) -> Path:
        path = local_path(store)
        store.close()
        shutil.rmtree(path)
        return path

    local_path = ObjectStore.local_path
    monkeypatch.setattr(ObjectStore, "local_path", removed)
    with pytest.raises(SnapshotGone), open_snapshot(machines[0].url, "q", 0, named=named, copies=str(machines[1].disk)):
        pass
    with (
        pytest.raises(SnapshotGone),
        open_snapshots(machines[0].url, "q", 1, named=named, copies=str(machines[1].disk)),
    ):
        pass
