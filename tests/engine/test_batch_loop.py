"""The loop ends at a boundary, closes the books whatever happened, and tells whoever waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok.engine.batch_loop import BatchLoop, QueryFailed, StopAtBoundary
from potok.errors import LogError, PotokError


class SparkQuery:
    """A streaming query that has ended, with or without an error, or runs until it is stopped."""

    def __init__(self, *, active: bool = True, error: str = "") -> None:
        self.isActive, self._error = active, error
        self.status = {"message": "Waiting for data to arrive"}

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> Exception | None:
        return RuntimeError(self._error) if self._error else None


class Books:
    def __init__(self) -> None:
        self.closed: list[PotokError | None] = []
        self.after = 0

    def loop(self, directory: Path, work: Any, query: SparkQuery | None = None) -> BatchLoop:
        def count() -> None:
            self.after += 1

        loop = BatchLoop("shared", directory, work=work, after=count, close=self.closed.append)
        found: Any = loop
        found._query = query or SparkQuery()
        return loop


def run_batch(loop: BatchLoop) -> None:
    nothing: Any = None
    loop._on_batch(nothing, 0)


def test_a_batch_runs_between_two_boundaries_and_what_comes_after_it_outside(tmp_path: Path) -> None:
    books = Books()
    seen: list[bool] = []
    loop = books.loop(tmp_path, lambda _: seen.append(loop.boundary.locked()))
    run_batch(loop)
    assert (seen, books.after, loop.boundary.locked()) == ([True], 1, False)


def test_nothing_is_run_once_it_is_to_stop(tmp_path: Path) -> None:
    books, seen = Books(), list[int]()
    loop = books.loop(tmp_path, seen.append)
    loop._stop_asked.set()
    with pytest.raises(StopAtBoundary):
        run_batch(loop)
    loop._watch()
    assert loop.wait(0)
    assert (seen, books.closed) == ([], [None])


def test_what_a_batch_raised_is_raised_by_wait_as_itself(tmp_path: Path) -> None:
    def full(_: int) -> None:
        raise LogError("no space left", hint="")

    books = Books()
    loop = books.loop(tmp_path, full, SparkQuery(active=False, error="org.apache.spark.SparkException: long"))
    with pytest.raises(LogError):
        run_batch(loop)
    loop._watch()
    with pytest.raises(LogError, match="no space left"):
        loop.wait(0)
    assert [str(error) for error in books.closed] == ["no space left"]
    assert not loop.boundary.locked()


def test_an_error_of_spark_is_told_in_one_line(tmp_path: Path) -> None:
    books = Books()
    query = SparkQuery(active=False, error="java.io.IOException: no space left")
    loop = books.loop(tmp_path, lambda _: None, query)
    loop._watch()
    with pytest.raises(QueryFailed, match="IOException: no space left"):
        loop.wait(0)


def test_books_that_cannot_be_closed_are_told_too(tmp_path: Path) -> None:
    def away(_: PotokError | None) -> None:
        raise LogError("the home is away", hint="")

    loop = BatchLoop("shared", tmp_path, work=lambda _: None, after=lambda: None, close=away)
    found: Any = loop
    found._query = SparkQuery(active=False)
    loop._watch()
    with pytest.raises(LogError, match="the home is away"):
        loop.wait(0)


def test_it_ends_when_it_is_finished_and_closes_between_two_batches(tmp_path: Path) -> None:
    held: list[bool] = []

    def finished() -> bool:
        held.append(loop.boundary.locked())
        return True

    query = SparkQuery()
    loop = BatchLoop("orders", tmp_path, work=lambda _: None, close=lambda _: None, finished=finished)
    found: Any = loop
    found._query = query
    loop._watch()
    assert loop.wait(0)
    assert (held, query.isActive) == ([True], False)


def test_an_error_while_it_is_watched_stops_the_query_and_is_raised_by_wait(tmp_path: Path) -> None:
    def finished() -> bool:
        raise LogError("the home is away", hint="")

    query = SparkQuery()
    loop = BatchLoop("orders", tmp_path, work=lambda _: None, close=lambda _: None, finished=finished)
    found: Any = loop
    found._query = query
    loop._watch()
    with pytest.raises(LogError, match="the home is away"):
        loop.wait(0)
    assert not query.isActive


def test_it_is_ready_once_when_spark_waits_for_data(tmp_path: Path) -> None:
    calls: list[bool] = []
    query = SparkQuery()
    loop = BatchLoop("q", tmp_path, work=lambda _: None, close=lambda _: None, ready=lambda: calls.append(locked()))

    def locked() -> bool:
        return loop.boundary.locked()

    found: Any = loop
    found._query = query
    for message in ("Initializing sources", "Getting offsets from X", "Waiting for data to arrive", "Waiting again"):
        query.status = {"message": message}
        loop._look_whether_ready()
    assert calls == [True]


class Away(LogError):
    """Somebody does not answer."""

    passing = True


class Tries:
    """A stand-in for the policy that allows some tries and waits for nothing."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def __call__(self, for_ms: int, given_up: object) -> Tries:
        return self

    def wait(self) -> bool:
        self.left -= 1
        return self.left >= 0


def failing(times: int, done: list[int]) -> Any:
    left = [times]

    def work(batch: int) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise Away(f"away {left[0]}")
        done.append(batch)

    return work


def test_what_may_pass_is_tried_again_as_the_same_batch_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("potok.engine.batch_loop.Retry", Tries(9))
    books, done, told = Books(), list[int](), list[str | None]()
    loop = books.loop(tmp_path, failing(3, done))
    loop._waiting = lambda error: told.append(error and error.message)
    run_batch(loop)
    assert done == [0]
    assert told == ["away 2", "away 1", "away 0", None]
    assert (books.after, loop.boundary.locked(), loop.failure()) == (1, False, None)


def test_when_the_time_is_over_the_query_stops_with_what_went_wrong_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("potok.engine.batch_loop.Retry", Tries(2))
    books, done = Books(), list[int]()
    loop = books.loop(tmp_path, failing(99, done))
    with pytest.raises(Away, match="away 96"):
        run_batch(loop)
    assert str(loop.failure()) == "away 96"


def test_a_query_that_waits_can_be_stopped(tmp_path: Path) -> None:
    books, done = Books(), list[int]()
    loop = books.loop(tmp_path, failing(99, done))
    loop._waiting = lambda _: loop._stop_asked.set()
    with pytest.raises(StopAtBoundary):
        run_batch(loop)
    assert (done, loop.failure()) == ([], None)


def test_a_look_for_the_end_that_nobody_answers_is_not_the_end(tmp_path: Path) -> None:
    def finished() -> bool:
        raise Away("away")

    loop = BatchLoop("q", tmp_path, work=lambda _: None, close=lambda _: None, finished=finished)
    assert loop._is_finished() is False
    assert not loop.boundary.locked()
