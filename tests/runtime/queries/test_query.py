"""A query on Spark: it starts, stops at a batch boundary, resumes, and runs alone."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import potok
from log.waiting import until
from potok import StreamsBuilder, session
from potok.log.open import open_broker
from potok.runtime.batches.failure_cause import QueryFailed
from potok.runtime.queries.lock import QueryAlreadyRuns
from potok.snapshots.progress import read_progress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def counting(name: str = "counting") -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount bigint")
    by_user = orders.group_by("user")
    by_user.count(name="counts")
    by_user.sum("amount", name="totals")
    return builder


def write(directory: Path, count: int, *, users: int = 10, amount: int = 1) -> None:
    with potok.Producer(directory) as producer:
        for number in range(count):
            producer.send("orders", {"user": f"u{number % users}", "amount": amount}, key=f"k{number}")


def test_a_run_until_the_end_resumes_where_the_last_one_stopped(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 100)
    potok.run(counting(), broker=tmp_path, until_end=True)
    tables = potok.open_tables(tmp_path, "counting")
    assert tables["counts"].all() == {f"u{n}": 10 for n in range(10)}

    write(tmp_path, 50)
    potok.run(counting(), broker=tmp_path, until_end=True)
    assert tables["counts"].all() == {f"u{n}": 15 for n in range(10)}

    progress = read_progress(open_broker(tmp_path), "counting")
    assert progress is not None
    assert (progress.state, progress.total_in, progress.lag) == ("stopped", 150, 0)


def test_the_path_of_the_data_may_have_spaces_and_letters_of_any_language(spark: Any, tmp_path: Path) -> None:
    directory = tmp_path / "a b ü 100%25"
    write(directory, 100)
    potok.run(counting(), broker=directory, until_end=True)
    assert potok.open_tables(directory, "counting")["counts"].all() == {f"u{n}": 10 for n in range(10)}


def test_a_query_without_records_runs_once_it_looks_for_them(spark: Any, tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    with potok.start(counting(), broker=tmp_path):
        until(lambda: (found := read_progress(broker, "counting")) and found.state == "running", 60)
        progress = read_progress(broker, "counting")
        assert progress is not None
        assert (progress.batch, progress.total_in, progress.offsets) == (0, 0, {"orders": {"0": 0}})


def test_a_second_start_of_a_running_query_is_refused(spark: Any, tmp_path: Path) -> None:
    with potok.start(counting(), broker=tmp_path), pytest.raises(QueryAlreadyRuns, match="process"):
        potok.start(counting(), broker=tmp_path)


def test_readers_see_one_consistent_cut_while_batches_are_written(spark: Any, tmp_path: Path) -> None:
    """Every record adds 3 to the total of its user and 1 to the count, so a cut in which they disagree is torn."""
    write(tmp_path, 200, amount=3)
    torn: list[Any] = []
    cuts: set[int] = set()
    with potok.start(counting(), broker=tmp_path, max_batch_records=200) as query:
        finished = threading.Event()

        def feed() -> None:
            for _ in range(15):
                write(tmp_path, 200, amount=3)
            finished.set()

        threading.Thread(target=feed).start()
        tables = potok.open_tables(tmp_path, "counting")
        expected = 16 * 200
        while sum(cut := tables.snapshot()["counts"].values()) < expected:
            snapshot = tables.snapshot()
            cuts.add(sum(snapshot["counts"].values()))
            if {user: 3 * n for user, n in snapshot["counts"].items()} != snapshot["totals"]:
                torn.append(snapshot)
            assert query.is_active, "the query must not end"
        assert cut is not None
    assert torn == []
    assert len(cuts) > 3, "the reader saw too few different cuts to prove anything"


def test_a_batch_that_cannot_succeed_fails_the_query_and_nothing_of_it_is_visible(spark: Any, tmp_path: Path) -> None:
    builder = StreamsBuilder("overflow")
    grouped = builder.stream("orders", value="user string, amount bigint").group_by("user")
    grouped.windowed_by(session("1 hour")).sum("amount", name="totals")
    write(tmp_path, 2, users=1, amount=2**62)
    with pytest.raises(potok.PotokError, match="no longer fits into 64 bits"):
        potok.run(builder, broker=tmp_path, until_end=True)
    assert potok.open_tables(tmp_path, "overflow")["totals"].all() == {}
    progress = read_progress(open_broker(tmp_path), "overflow")
    assert progress is not None
    assert progress.state == "failed"


def test_an_overflowing_sum_makes_a_dead_letter_and_the_query_continues(spark: Any, tmp_path: Path) -> None:
    builder = StreamsBuilder("overflow")
    builder.stream("orders", value="user string, amount bigint").group_by("user").sum("amount", name="totals")
    write(tmp_path, 2, users=1, amount=2**62)
    potok.run(builder, broker=tmp_path, until_end=True)
    assert list(potok.open_tables(tmp_path, "overflow")["totals"].all().values()) == [2**62]
    progress = read_progress(open_broker(tmp_path), "overflow")
    assert progress is not None
    assert progress.dead_letters_by_reason == {"error": 1}


def test_a_spark_error_is_reported_in_one_line() -> None:
    error = QueryFailed("orders", "java.lang.OutOfMemoryError: heap")
    assert "nothing of the batch is visible" in error.hint
