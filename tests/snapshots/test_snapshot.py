"""One consistent snapshot of all tables, while batches are written and after they failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.backends.state_url import Where
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.snapshot import Committed, Snapshot, TooManyCommits, read_snapshot
from potok.state.fence import Attempt, Fence
from potok.state.open import StateLocation, close_store, open_store
from potok.state.session import StateSession
from potok.topology.nodes.windows import tumbling_ms


def tables() -> StreamsBuilder:
    builder = StreamsBuilder("q")
    stream = builder.stream("t", value=int)
    stream.group_by_key().count(name="n")
    stream.group_by_key().collect_list(name="all")
    stream.group_by_key().windowed_by(tumbling_ms(10, 0, 20)).count(name="w")
    stream.to_table(name="last").filter(lambda v: v > 0, name="kept")
    return builder


def fail_before_the_commit(driver: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the next batch until all its state is written and nothing is published."""

    class Died(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(driver.broker, "publish", die)
        with pytest.raises(Died):
            driver.run()


def test_writes_of_the_running_batch_are_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcess(tables(), shards=2) as driver:
        for key in "ab":
            driver.send("t", 1, key, timestamp=1)
        driver.run()
        before = driver.tables.snapshot()
        for key in "abc":
            driver.send("t", 2, key, timestamp=100)
        driver.send("t", None, "a", timestamp=100)
        fail_before_the_commit(driver, monkeypatch)
        assert driver.tables.snapshot() == before


@pytest.mark.parametrize("again", ["same driver", "after a restart"])
def test_a_failed_batch_is_repeated_from_the_same_state(again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcess(tables(), shards=2) as driver, InProcess(tables(), shards=2) as undisturbed:
        for target in (driver, undisturbed):
            target.send("t", 1, "a", timestamp=1)
            target.run()
            for at, key in enumerate("abca"):
                target.send("t", at, key, timestamp=at * 20)
        fail_before_the_commit(driver, monkeypatch)
        if again == "after a restart":
            driver.restart()
        driver.run()
        undisturbed.run()
        assert driver.tables.snapshot() == undisturbed.tables.snapshot()


def test_writes_of_a_failed_batch_are_void_under_another_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    def over(limit: int) -> StreamsBuilder:
        builder = StreamsBuilder("q")
        builder.stream("t", value=int).filter(lambda v: v > limit).group_by_key().count(name="n")
        return builder

    with InProcess(over(0)) as driver:
        driver.send("t", 5, "small", timestamp=1)
        driver.send("t", 50, "large", timestamp=1)
        fail_before_the_commit(driver, monkeypatch)
        driver.replace(over(10))
        driver.run()
        assert driver.table("n").all() == {"large": 1}


def test_repeated_failures_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcess(tables(), shards=2) as driver:
        for number in range(4):
            driver.send("t", number, "a", timestamp=number)
            fail_before_the_commit(driver, monkeypatch)
            driver.restart()
            driver.run()
        assert driver.table("n").all() == {"a": 4}
        assert driver.table("all").all() == {"a": [0, 1, 2, 3]}


def write(path: Path, batch: int, value: bytes) -> None:
    """Write one batch of a query with two shards, with the same value in both."""
    for shard in (0, 1):
        session = StateSession(open_store(path, "q", shard), Fence(Attempt(1, batch)))
        session.write("t", [(b"k", value, session.read("t", [b"k"])[0])])
        session.commit()


def look(path: Path, fence_of: Callable[[], Fence], shards: int = 2) -> Callable[[], Committed]:
    return lambda: Committed(StateLocation(Where.of(path), "q"), shards, fence_of())


def values(snapshot: Snapshot) -> list[bytes]:
    return [value for _, value in snapshot.scan("t")]


def test_a_batch_that_commits_while_the_shards_are_opened_makes_the_reader_start_over(tmp_path: Path) -> None:
    write(tmp_path, 1, b"1")
    committed = [1, 2, 2, 2]

    def fence_of() -> Fence:
        batch = committed.pop(0)
        write(tmp_path, batch, str(batch).encode())
        return Fence(Attempt(1, batch + 1))

    assert read_snapshot(look(tmp_path, fence_of), values) == [b"2", b"2"]
    assert len(committed) == 0


def test_a_reader_gives_up_after_its_attempts(tmp_path: Path) -> None:
    batches = iter(range(10_000))
    with pytest.raises(TooManyCommits):
        read_snapshot(look(tmp_path, lambda: Fence(Attempt(1, next(batches))), 1), values)


@pytest.mark.parametrize("how", [values, lambda snapshot: [snapshot.get("t", shard, b"k") for shard in (0, 1)]])
def test_state_that_is_closed_during_a_read_is_read_again(tmp_path: Path, how: Callable[[Snapshot], Any]) -> None:
    write(tmp_path, 1, b"1")
    close = [0, 1]

    def work(snapshot: Snapshot) -> Any:
        if close:
            close_store(tmp_path, "q", close.pop())
        return how(snapshot)

    assert read_snapshot(look(tmp_path, lambda: Fence(Attempt(1, 2))), work) == [b"1", b"1"]
    assert not close


def test_a_partly_written_batch_is_not_visible(tmp_path: Path) -> None:
    write(tmp_path, 1, b"1")
    session = StateSession(open_store(tmp_path, "q", 1), Fence(Attempt(1, 2)))
    session.write("t", [(b"k", b"2", b"1"), (b"new", b"2", None)])
    session.commit()
    assert read_snapshot(look(tmp_path, lambda: Fence(Attempt(1, 2))), values) == [b"1", b"1"]
    assert read_snapshot(
        look(tmp_path, lambda: Fence(Attempt(1, 2))), lambda snapshot: (snapshot.batch, snapshot.shards)
    ) == (1, 2)


def test_concurrent_readers_see_both_shards_at_the_same_batch(tmp_path: Path) -> None:
    write(tmp_path, 1, b"1")
    committed = 1
    torn: list[list[bytes]] = []
    done = threading.Event()

    def read(fence_of: Callable[[], Fence]) -> None:
        while not done.is_set():
            found = read_snapshot(look(tmp_path, fence_of), values)
            if len(set(found)) != 1:
                torn.append(found)

    reader = threading.Thread(target=read, args=(lambda: Fence(Attempt(1, committed + 1)),))
    reader.start()
    for batch in range(2, 40):
        write(tmp_path, batch, str(batch).encode())
        committed = batch
    done.set()
    reader.join()
    assert torn == []
