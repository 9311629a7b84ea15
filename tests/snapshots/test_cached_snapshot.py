"""A cached snapshot shows the same as a snapshot opened at this moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.cached_snapshot import CachedSnapshot, NotFrozen
from potok.snapshots.rows.layout import load_layouts
from potok.snapshots.tables import NoSuchQuery
from potok.state.lmdb.lmdb_store import LmdbSnapshot
from potok.state.open import StateLocation
from snapshots.test_snapshot import fail_before_the_commit

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
def cached(driver: InProcess) -> Iterator[CachedSnapshot]:
    found = CachedSnapshot(driver.broker, "q")
    yield found
    found.release()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows each time snapshots are opened."""
    times: list[int] = []
    real = StateLocation.snapshots

    @contextmanager
    def counted(self: StateLocation, shards: int, *, frozen: bool = False) -> Iterator[Any]:
        times.append(shards)
        with real(self, shards, frozen=frozen) as found:
            yield found

    monkeypatch.setattr(StateLocation, "snapshots", counted)
    return times


def send(driver: InProcess, keys: str) -> None:
    for key in keys:
        driver.send("t", 1, key, timestamp=1)


def rendered(cached: CachedSnapshot) -> dict[bytes, int]:
    def work(snapshot: Any, layouts: bytes) -> dict[bytes, int]:
        codec = load_layouts(layouts)["n"].codec()
        return {key: codec.value(data) for key, data in snapshot.scan("n")}

    return dict(sorted(cached.read(work).items()))


def test_the_next_batch_is_visible_after_its_commit(driver: InProcess, cached: CachedSnapshot) -> None:
    assert rendered(cached) == {b"a": 1, b"b": 1}
    send(driver, "ac")
    driver.run()
    assert rendered(cached) == {b"a": 2, b"b": 1, b"c": 1}


@pytest.mark.parametrize("released", [False, True])
def test_writes_of_the_running_batch_are_not_visible(
    driver: InProcess, cached: CachedSnapshot, monkeypatch: pytest.MonkeyPatch, *, released: bool
) -> None:
    before = rendered(cached)
    send(driver, "abc")
    fail_before_the_commit(driver, monkeypatch)
    if released:
        cached.release()
    assert rendered(cached) == before


def test_snapshots_are_opened_once_for_all_reads_of_a_batch(
    driver: InProcess, cached: CachedSnapshot, opened: list[int]
) -> None:
    for _ in range(3):
        rendered(cached)
    assert opened == [SHARDS]
    driver.broker.set_metadata({"something else": b"1"})
    rendered(cached)
    assert opened == [SHARDS]
    send(driver, "a")
    driver.run()
    opened.clear()
    rendered(cached)
    assert opened == [SHARDS]


def test_a_released_snapshot_is_opened_again(cached: CachedSnapshot, opened: list[int]) -> None:
    before = rendered(cached)
    assert cached.is_open
    cached.release()
    assert not cached.is_open
    assert rendered(cached) == before
    assert len(opened) == 2


def test_closed_state_is_opened_again(driver: InProcess, cached: CachedSnapshot) -> None:
    before = rendered(cached)
    from potok.snapshots.state_location import state_of

    state_of(driver.broker, "q").close(SHARDS)
    assert rendered(cached) == before


def test_a_batch_that_commits_while_the_shards_are_opened_makes_the_reader_start_over(
    driver: InProcess, cached: CachedSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = StateLocation.snapshots, ["b"]

    @contextmanager
    def overtaken(self: StateLocation, shards: int, *, frozen: bool = False) -> Iterator[Any]:
        with real(self, shards, frozen=frozen) as found:
            if late:
                send(driver, late.pop())
                with monkeypatch.context() as patched:
                    patched.setattr(StateLocation, "snapshots", real)
                    driver.run()
            yield found

    monkeypatch.setattr(StateLocation, "snapshots", overtaken)
    assert rendered(cached) == {b"a": 1, b"b": 2}


def test_a_snapshot_that_is_not_frozen_cannot_be_cached(
    cached: CachedSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LmdbSnapshot, "frozen", False)
    with pytest.raises(NotFrozen):
        rendered(cached)
    assert not cached.is_open


def test_a_query_that_never_ran_has_no_snapshot(driver: InProcess) -> None:
    with pytest.raises(NoSuchQuery):
        rendered(CachedSnapshot(driver.broker, "nobody"))
