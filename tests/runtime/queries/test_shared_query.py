"""Many topologies share one loop over batches: they come, go, rest and fail without hurting each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.errors import LogError
from potok.runtime.batches.group_batch import Committed
from potok.runtime.queries.errors import DuplicateQuery, NotCaughtUp, NotInGroup, NotRunning
from potok.runtime.queries.group_query import QueryState
from potok.runtime.queries.lock import QueryAlreadyRuns, QueryLock
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.spark.start.lost_jvm import JvmGone
from potok.testing.outputs import read_outputs
from runtime.queries.by_hand import ByHand, Rows, counting, read_counts, send


def test_all_queries_take_part_in_one_job_and_each_has_its_own_tables(shared: ByHand) -> None:
    send(shared.broker, 100)
    for name in ("one", "two", "three"):
        shared.add(counting(name))
    assert shared.settle() == 1
    assert shared.executor.jobs == [{"one", "two", "three"}]
    for name in ("one", "two", "three"):
        assert shared.counts(name) == {f"u{n}": 20 for n in range(5)}
        assert shared.statuses()[name].lag == 0


def test_a_new_query_starts_at_the_first_record_and_the_others_continue(shared: ByHand) -> None:
    send(shared.broker, 50)
    shared.add(counting("one"))
    shared.settle()
    shared.add(counting("late"))
    send(shared.broker, 50)
    shared.settle()
    assert shared.counts("one") == shared.counts("late") == {f"u{n}": 20 for n in range(5)}
    assert (shared.batch_of("one"), shared.batch_of("late")) == (2, 1)


def test_a_query_that_starts_with_the_latest_records_reads_its_tables_from_the_beginning(shared: ByHand) -> None:
    send(shared.broker, 50)
    send(shared.broker, 10, "users")
    builder = StreamsBuilder("joined")
    names = builder.table("users", value="user string, amount bigint", name="names")
    builder.stream("orders", value="user string, amount bigint").join(names, lambda order, user: order).to("joined-out")
    shared.add(builder, start="latest")
    shared.settle()
    assert len(shared.tables("joined")["names"].all()) == 10
    assert read_outputs(shared.broker, "joined-out") == []
    send(shared.broker, 10)
    shared.settle()
    assert len(read_outputs(shared.broker, "joined-out")) == 10


def test_what_one_query_writes_another_reads_in_the_next_batch(shared: ByHand) -> None:
    builder = StreamsBuilder("large")
    builder.stream("orders", value="user string, amount bigint").filter(lambda v: v["amount"] > 5).to("large")
    send(shared.broker, 10, amount=9)
    shared.add(builder)
    shared.add(counting("counted", "large"))
    assert shared.settle() == 2
    assert sum(shared.counts("counted").values()) == 10


def test_tables_of_several_queries_are_read_at_one_batch(shared: ByHand) -> None:
    """A batch is committed while the first table is being read, and yet the second shows the batch before."""
    for name in ("one", "two"):
        shared.add(counting(name))
    send(shared.broker, 10)
    shared.settle()
    reads: list[int] = []

    def work(counts: Mapping[str, Rows]) -> tuple[int, int]:
        reads.append(len(reads))
        first = sum(counts["one"]().values())
        if len(reads) == 1:
            send(shared.broker, 10)
            shared.settle()
        return first, sum(counts["two"]().values())

    assert read_counts(shared.broker, ["one", "two"], work) == (10, 10)
    assert read_counts(shared.broker, ["one", "two"], work) == (20, 20)


def test_a_removed_query_releases_its_lock_and_resumes_where_it_was(shared: ByHand) -> None:
    shared.add(counting("one"))
    shared.add(counting("two"))
    send(shared.broker, 10)
    shared.settle()
    shared.remove("one")
    send(shared.broker, 10)
    shared.settle()
    assert sum(shared.counts("one").values()) == 10
    assert sum(shared.counts("two").values()) == 20
    assert sorted(shared.statuses()) == ["two"]
    progress = read_progress(shared.broker, "one")
    assert progress is not None
    assert progress.state == "stopped"
    QueryLock(shared.broker.directory / "queries" / "one", "one").release()
    shared.add(counting("one"))
    shared.settle()
    assert sum(shared.counts("one").values()) == 20


def test_a_query_of_a_group_holds_its_lock(shared: ByHand) -> None:
    shared.add(counting("one"))
    with pytest.raises(QueryAlreadyRuns, match='"one" is already running'):
        QueryLock(shared.broker.directory / "queries" / "one", "one")
    with pytest.raises(DuplicateQuery, match="is already in the group"):
        shared.add(counting("one"))


def test_a_second_shared_query_of_that_name_is_refused(shared: ByHand) -> None:
    with pytest.raises(QueryAlreadyRuns, match='"shared"'):
        ByHand(shared.broker.directory)


def test_a_paused_query_reads_nothing_until_it_is_resumed(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.runtime.queries.group_query.RATE_OVER_S", 1e9)
    shared.add(counting("one"))
    shared.add(counting("two"))
    shared.pause("one")
    send(shared.broker, 10)
    shared.settle()
    status = shared.statuses()["one"]
    assert (status.state, status.lag) == (QueryState.PAUSED, 10)
    assert sum(shared.counts("two").values()) == 10
    progress = read_progress(shared.broker, "one")
    assert progress is not None
    assert progress.state == "paused"
    shared.resume("one")
    shared.settle()
    assert sum(shared.counts("one").values()) == 10
    assert shared.statuses()["one"].records_per_second == 10 / 1e9


def test_a_batch_that_was_started_before_its_query_was_paused_is_repeated_to_the_same_end(shared: ByHand) -> None:
    shared.add(counting("one"))
    send(shared.broker, 10)
    assert shared.plan()
    shared.pause("one")
    send(shared.broker, 10)
    shared.resume("one")
    shared.step()
    assert sum(shared.counts("one").values()) == 10
    shared.settle()
    assert sum(shared.counts("one").values()) == 20


def test_listeners_hear_who_committed_and_which_tables_changed(shared: ByHand) -> None:
    heard: list[Mapping[str, Committed]] = []
    stop = shared.on_batch(heard.append)
    shared.on_batch(lambda _: 1 // 0)
    send(shared.broker, 10)
    send(shared.broker, 10, "others")
    shared.add(counting("one"))
    shared.settle()
    shared.add(counting("two", "others"))
    shared.settle()
    tables = frozenset({"counts"})
    assert heard == [{"one": Committed(1, tables)}, {"two": Committed(1, tables)}]
    stop()
    send(shared.broker, 10)
    shared.settle()
    assert len(heard) == 2


def test_a_wait_names_those_who_are_behind(shared: ByHand) -> None:
    shared.add(counting("one"))
    shared.wait_caught_up(0)
    send(shared.broker, 10)
    with pytest.raises(NotCaughtUp, match='"one" 10'):
        shared.wait_caught_up(0)
    shared.settle()
    shared.wait_caught_up(0)
    with pytest.raises(NotInGroup, match="queries of the group: one"):
        shared.wait_caught_up(0, ["nobody"])


def test_queries_are_closed_in_order_when_their_group_stops(tmp_path: Path) -> None:
    shared = ByHand(tmp_path)
    shared.add(counting("one"))
    shared.stop()
    entry = read_entry(shared.broker, "one")
    assert entry is not None
    assert entry.clean
    QueryLock(tmp_path / "queries" / "one", "one").release()
    ByHand(tmp_path).stop()


def test_a_loop_error_is_reported_by_every_query_and_all_locks_are_released(tmp_path: Path) -> None:
    shared = ByHand(tmp_path)
    shared.add(counting("one"))
    shared._close(LogError("no space left", hint=""))
    found = shared.statuses()["one"]
    assert (found.state, found.error) == (QueryState.FAILED, "no space left")
    progress = read_progress(shared.broker, "one")
    assert progress is not None
    assert (progress.state, progress.error) == ("failed", "no space left")
    with pytest.raises(NotRunning, match="has ended"):
        shared.retry("one")
    shared.stop()
    again = ByHand(tmp_path)
    again.add(counting("one"))
    again.stop()


def test_a_query_may_be_paused_from_the_start(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"), paused=True)
    assert shared.settle() == 0
    shared.resume("one")
    shared.settle()
    assert sum(shared.counts("one").values()) == 10


def test_queries_whose_end_cannot_be_written_down_keep_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ByHand(tmp_path)
    for name in ("one", "two"):
        first.add(counting(name))

    def full(*_: Any, **__: Any) -> None:
        raise LogError("no space left", hint="make some")

    monkeypatch.setattr(first.broker, "set_metadata", full)
    first._close(LogError("no space left", hint="make some"))
    monkeypatch.undo()
    second = ByHand(tmp_path)
    for name in ("one", "two"):
        second.add(counting(name))
    second.stop()


def test_an_executor_that_has_ended_is_noticed_without_records(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise JvmGone

    shared.add(counting("one"))
    shared.settle()
    monkeypatch.setattr(shared.executor, "check", gone)
    with pytest.raises(JvmGone):
        shared.step()
