"""Tasks: who does what, and what comes back of those that fail."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from potok.runtime.batches.assignment import balance
from potok.runtime.batches.executor import Outcome
from potok.runtime.batches.failure_cause import QueryFailed
from potok.runtime.batches.task import Job
from runtime.queries.by_hand import ByHand, counting, send


def test_pieces_are_balanced_over_tasks() -> None:
    assert balance([10, 9_000, 20, 30, 8_000], 2, lambda size: size + 500) == [[9_000, 10], [8_000, 30, 20]]


def test_fewer_pieces_than_tasks_leave_no_task_empty() -> None:
    assert balance([1], 8, lambda size: size) == [[1]]
    assert balance([], 8, len) == []


def test_a_query_that_needs_a_shuffle_and_those_that_do_not_share_a_job(shared: ByHand) -> None:
    for name in ("small", "large", "also-small"):
        shared.add(counting(name))
    shared._queries["large"].runner.small_batch = -1
    send(shared.broker, 100)
    assert shared.settle() == 1
    for name in ("small", "large", "also-small"):
        assert shared.counts(name) == {f"u{n}": 20 for n in range(5)}
    assert shared._queries["large"].runner.metrics.records_in == 100


@pytest.mark.parametrize("method", ["read", "all_levels", "run_level"])
def test_whatever_a_task_raises_comes_back_as_data_with_the_time_it_took(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    job = Job(b"", b"", 1, "broken")

    def crash(*_: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(Job, "_read", crash)
    monkeypatch.setattr(Job, "_shards", crash)
    calls: dict[str, Any] = {
        "read": lambda: job.read(0, iter(())),
        "all_levels": lambda: job.all_levels(iter(())),
        "run_level": lambda: job.run_level(1, 0, iter(())),
    }
    outcome = Outcome()
    for _, data in calls[method]():
        outcome.add(data)
    assert isinstance(outcome.error, QueryFailed)
    assert 'query "broken" failed: MemoryError: no room' in outcome.error.message
    assert outcome.busy_s > 0


def test_the_first_error_of_a_part_counts() -> None:
    outcome = Outcome()
    for text in ("first", "second"):
        outcome.add(pickle.dumps(QueryFailed("broken", text)))
    assert outcome.error is not None
    assert "first" in outcome.error.message
