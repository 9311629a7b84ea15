"""Cells in Cassandra: the fence, interrupted writes, and tables from which much is removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from potok.backends.cassandra.connection import Call, connect
from potok.backends.state_url import Where
from potok.state.cassandra import cells as cells_module
from potok.state.cassandra.cassandra_store import CassandraStore
from potok.state.cassandra.cells import Cells
from potok.state.cassandra.layout import listed_shards
from potok.state.cassandra.snapshots import frozen_snapshots
from potok.state.cell import decode_cell, encode_cell
from potok.state.fence import Attempt, Fence
from potok.state.open import open_snapshots, remove_state
from potok.state.session import StateSession, tombstones_of
from state.shard import Shard

KEYS = [b"%03d" % number for number in range(100)]


class ProcessDied(Exception):
    """The end of a process, in the middle of a write."""


@pytest.fixture
def shard(cassandra_url: str) -> Shard:
    return Shard(Where.of(cassandra_url))


@pytest.fixture
def in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "KEYS", 10)
    monkeypatch.setattr(cells_module, "WRITES", 10)


def session(shard: Shard, epoch: int, batch: int, ended: dict[int, int] | None = None) -> StateSession:
    return StateSession(shard.store(), Fence(Attempt(epoch, batch), ended or {}))


def write(shard: Shard, epoch: int, batch: int, value: bytes | None, ended: dict[int, int] | None = None) -> None:
    attempt = session(shard, epoch, batch, ended)
    attempt.sweep(["t"])
    before = attempt.read("t", KEYS)
    attempt.write("t", [(key, value, old) for key, old in zip(KEYS, before, strict=True)])
    attempt.commit()


def die_after(requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End a write after a number of requests."""
    left, real = iter(range(requests)), Cells.execute

    def execute(self: Cells, calls: Iterable[Call]) -> None:
        for call in calls:
            if next(left, None) is None:
                raise ProcessDied
            real(self, [call])

    monkeypatch.setattr(Cells, "execute", execute)


def delay_writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Cells, Call]]:
    """Hold back the requests of a write, as a network might."""
    held: list[tuple[Cells, Call]] = []
    monkeypatch.setattr(Cells, "execute", lambda self, calls: held.extend((self, call) for call in calls))
    return held


def test_writes_of_a_fenced_attempt_that_arrive_late_replace_nothing(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process with epoch 1 is paused after its claim; epoch 2 takes over, writes, deletes and leaves keys alone."""
    write(shard, 1, 1, b"1")
    with monkeypatch.context() as patched:
        held = delay_writes(patched)
        write(shard, 1, 2, b"zombie")
    later = session(shard, 2, 2, {1: 1})
    before = later.read("t", KEYS)
    assert set(before) == {b"1"}
    rows = list(zip(KEYS, before, strict=True))
    later.write("t", [(key, b"2", old) for key, old in rows[:50]] + [(key, None, old) for key, old in rows[50:60]])
    later.discard("t", KEYS[60:70])
    later.commit()
    assert held
    for cells, call in held:
        cells.execute([call])
    found = shard.store().get_many("t", KEYS)
    written = [decode_cell(data) for data in found[:60] if data is not None]
    assert {(cell.epoch, cell.batch, cell.new) for cell in written} == {(2, 2, b"2"), (2, 2, None)}
    assert found[60:70] == [None] * 10, "a removed cell stays removed"
    reader = session(shard, 2, 3, {1: 1})
    assert reader.read("t", KEYS) == [b"2"] * 50 + [None] * 20 + [b"1"] * 30


@pytest.mark.usefixtures("in_chunks")
def test_a_write_interrupted_between_two_requests_is_void(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shard, 1, 1, b"1")
    with monkeypatch.context() as patched:
        die_after(4, patched)
        with pytest.raises(ProcessDied):
            write(shard, 1, 2, b"2")
    assert {cell.new for _, cell in shard.store().scan("t")} == {b"1", b"2"}
    assert session(shard, 1, 2).read("t", KEYS) == [b"1"] * 100
    assert session(shard, 2, 2, {1: 1}).read("t", KEYS) == [b"1"] * 100
    write(shard, 2, 2, b"3", {1: 1})
    assert session(shard, 2, 3, {1: 1}).read("t", KEYS) == [b"3"] * 100


@pytest.mark.usefixtures("in_chunks")
def test_cells_of_an_interrupted_write_are_counted_by_the_next_one(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        die_after(4, patched)
        with pytest.raises(ProcessDied):
            write(shard, 1, 1, b"1")
    assert shard.store().entries("t") == 0
    shard.store().put_many(Attempt(1, 1), [("t", [(b"x", encode_cell(Attempt(1, 1), b"1", None))])])
    assert shard.store().entries("t") == 41


@pytest.mark.usefixtures("in_chunks")
def test_an_interrupted_sweep_is_repeated(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shard, 1, 1, b"1")
    write(shard, 1, 2, None)
    with monkeypatch.context() as patched:
        die_after(3, patched)
        later = session(shard, 1, 3)
        later.sweep(["t"])
        with pytest.raises(ProcessDied):
            later.commit()
    store = shard.store()
    assert len(store.page(tombstones_of("t"), limit=200)) == 100
    again = session(shard, 1, 3)
    again.sweep(["t"])
    again.commit()
    assert (store.page("t", limit=9), store.page(tombstones_of("t"), limit=9)) == ([], [])
    assert (shard.store().entries("t"), shard.store().entries(tombstones_of("t"))) == (0, 0)


def test_a_second_copy_of_a_task_that_ends_early_removes_nothing_that_the_first_wrote(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shard, 1, 1, b"1")
    write(shard, 1, 2, None)
    write(shard, 1, 3, b"3")
    with monkeypatch.context() as patched:
        die_after(0, patched)
        with pytest.raises(ProcessDied):
            write(shard, 1, 3, b"3")
    assert session(shard, 1, 4).read("t", KEYS) == [b"3"] * 100


def test_reading_does_not_pass_the_tombstones_of_what_was_removed_from_the_front(shard: Shard) -> None:
    """The server of the tests refuses to read more than 2,000 tombstones; batches remove 6,000 cells in all."""
    entries = iter(range(1 << 30))
    for batch in range(1, 9):
        attempt = session(shard, 1, batch)
        first = attempt.first_key("queue")
        assert first == (None if batch == 1 else b"%08d" % ((batch - 2) * 1_000))
        attempt.discard_below("queue", b"%08d" % ((batch - 1) * 1_000))
        attempt.write("queue", [(b"%08d" % entry, b"", None) for entry in islice(entries, 1_000)])
        attempt.commit()
    assert shard.store().entries("queue") == 1_000


def test_cells_between_many_tombstones_are_read_in_small_pages(shard: Shard) -> None:
    keys = [b"%05d" % number for number in range(10_000)]
    store = shard.store()
    store.put_many(Attempt(1, 1), [("t", [(key, encode_cell(Attempt(1, 1), b"1", None)) for key in keys])])
    kept = keys[::100]
    store.put_many(Attempt(1, 2), [], [("t", sorted(set(keys) - set(kept)))])
    assert [key for key, _ in shard.store().page("t", limit=20_000)] == kept
    assert [[key for key, _ in rows] for rows in shard.store().ranges("t", [(b"", None), (b"09", b"095")])] == [
        kept,
        [key for key in kept if b"09" <= key < b"095"],
    ]


def test_a_frozen_snapshot_never_changes(shard: Shard) -> None:
    write(shard, 1, 1, b"1")
    with frozen_snapshots(shard.where, shard.query, 2) as (snapshot, empty):
        write(shard, 1, 2, b"2")
        assert snapshot.frozen and empty.frozen
        assert (snapshot.tables(), snapshot.attempt()) == (["t"], Attempt(1, 1))
        assert {cell.new for _, cell in snapshot.scan("t")} == {b"1"}
        assert (empty.tables(), list(empty.rows("t")), empty.attempt()) == ([], [], None)


def test_removed_state_leaves_nothing(shard: Shard) -> None:
    write(shard, 1, 1, b"1")
    connection, store = connect(shard.where), shard.store()
    assert isinstance(store, CassandraStore)
    before = store._current().tables["t"]
    remove_state(shard.where, shard.query)
    assert connection.run(lambda: listed_shards(connection, shard.query)) == []
    assert list(store._cells.rows("t", before, b"", None, 1_000)) == []
    write(shard, 1, 1, b"2")
    assert session(shard, 1, 2).read("t", KEYS) == [b"2"] * 100
    assert shard.store().entries("t") == 100


def test_a_large_cell_is_alone_in_its_requests(shard: Shard) -> None:
    store = shard.store()
    values = {b"%d" % number: bytes([number]) * 1_000_000 for number in range(6)}
    store.put_many(
        Attempt(1, 1), [("t", [(key, encode_cell(Attempt(1, 1), data, None)) for key, data in values.items()])]
    )
    assert {key: cell.new for key, cell in shard.store().scan("t")} == values


def test_a_cell_that_the_server_cannot_hold_is_a_clear_error(shard: Shard) -> None:
    cell = encode_cell(Attempt(1, 1), bytes(5 << 20), None)
    with pytest.raises(Exception, match="too large for Cassandra") as caught:
        shard.store().put_many(Attempt(1, 1), [("t", [(b"a", cell)])])
    assert "commitlog_segment_size" in caught.value.hint  # type: ignore[attr-defined]


@pytest.fixture
def snapshot_rows(shard: Shard) -> Iterator[Iterator[tuple[bytes, bytes]]]:
    with open_snapshots(shard.where, shard.query, 1) as (snapshot,):
        yield snapshot.rows("t")


def test_a_shard_that_was_never_written_is_empty(snapshot_rows: Iterator[tuple[bytes, bytes]]) -> None:
    assert list(snapshot_rows) == []
