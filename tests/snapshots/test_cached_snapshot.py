"""A cached snapshot shows what a snapshot opened now would show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.cached_snapshot import CachedSnapshot, NotFrozen
from potok.snapshots.layout import load_layouts
from potok.snapshots.tables import NoSuchQuery
from potok.state.lmdb.lmdb_snapshot import LmdbSnapshot
from potok.state.location import Place
from snapshots.test_snapshot import die_before_the_commit

SHARDS = 2


def counts() -> StreamsBuilder:
    builder = StreamsBuilder("q")
    builder.stream("t", value=int).group_by_key().count(name="n")
    return builder


@pytest.fixture
def driver() -> Iterator[InProcess]:
    with InProcess(counts(), shards=SHARDS) as found:
        send(found, "ab")
        found.run()
        yield found


@pytest.fixture
def held(driver: InProcess) -> Iterator[CachedSnapshot]:
    found = CachedSnapshot(driver.broker, "q")
    yield found
    found.release()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows each time snapshots are opened."""
    times: list[int] = []
    real = Place.snapshots

    @contextmanager
    def counted(self: Place, shards: int, *, frozen: bool = False) -> Iterator[Any]:
        times.append(shards)
        with real(self, shards, frozen=frozen) as found:
            yield found

    monkeypatch.setattr(Place, "snapshots", counted)
    return times


def send(driver: InProcess, keys: str) -> None:
    for key in keys:
        driver.send("t", 1, key, timestamp=1)


def shown(held: CachedSnapshot) -> dict[bytes, int]:
    def work(snapshot: Any, layouts: bytes) -> dict[bytes, int]:
        codec = load_layouts(layouts)["n"].codec()
        return {key: codec.value(data) for key, data in snapshot.scan("n")}

    return dict(sorted(held.read(work).items()))


def test_the_next_batch_is_seen_when_it_is_committed(driver: InProcess, held: CachedSnapshot) -> None:
    assert shown(held) == {b"a": 1, b"b": 1}
    send(driver, "ac")
    driver.run()
    assert shown(held) == {b"a": 2, b"b": 1, b"c": 1}


@pytest.mark.parametrize("released", [False, True])
def test_what_the_running_batch_writes_is_not_seen(
    driver: InProcess, held: CachedSnapshot, monkeypatch: pytest.MonkeyPatch, *, released: bool
) -> None:
    before = shown(held)
    send(driver, "abc")
    die_before_the_commit(driver, monkeypatch)
    if released:
        held.release()
    assert shown(held) == before


def test_snapshots_are_opened_once_for_all_reads_of_a_batch(
    driver: InProcess, held: CachedSnapshot, opened: list[int]
) -> None:
    for _ in range(3):
        shown(held)
    assert opened == [SHARDS]
    driver.broker.set_metadata({"something else": b"1"})
    shown(held)
    assert opened == [SHARDS]
    send(driver, "a")
    driver.run()
    opened.clear()
    shown(held)
    assert opened == [SHARDS]


def test_a_cut_that_was_released_is_opened_again(held: CachedSnapshot, opened: list[int]) -> None:
    before = shown(held)
    assert held.is_open
    held.release()
    assert not held.is_open
    assert shown(held) == before
    assert len(opened) == 2


def test_cells_that_were_closed_are_opened_again(driver: InProcess, held: CachedSnapshot) -> None:
    before = shown(held)
    from potok.snapshots.state_location import state_of

    state_of(driver.broker, "q").close(SHARDS)
    assert shown(held) == before


def test_a_batch_that_commits_while_the_shards_are_opened_makes_the_reader_start_over(
    driver: InProcess, held: CachedSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = Place.snapshots, ["b"]

    @contextmanager
    def overtaken(self: Place, shards: int, *, frozen: bool = False) -> Iterator[Any]:
        with real(self, shards, frozen=frozen) as found:
            if late:
                send(driver, late.pop())
                with monkeypatch.context() as patched:
                    patched.setattr(Place, "snapshots", real)
                    driver.run()
            yield found

    monkeypatch.setattr(Place, "snapshots", overtaken)
    assert shown(held) == {b"a": 1, b"b": 2}


def test_a_store_whose_snapshots_change_cannot_be_held(held: CachedSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LmdbSnapshot, "frozen", False)
    with pytest.raises(NotFrozen):
        shown(held)
    assert not held.is_open


def test_a_query_that_never_ran_has_no_cut(driver: InProcess) -> None:
    with pytest.raises(NoSuchQuery):
        shown(CachedSnapshot(driver.broker, "nobody"))
