"""Small parts go together into few tasks, large ones through levels, and all come back by their number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.shared.by_hand import ByHand, counting, send
from potok.engine.shared.joint_job import GuardedJob, Outcome, TaskFailed, grouped


def part(records: int) -> Any:
    return SimpleNamespace(spec=SimpleNamespace(records=records), job=lambda: records)


def test_small_parts_are_spread_by_their_records() -> None:
    groups: Any = grouped([(n, part(records)) for n, records in enumerate((10, 9_000, 20, 30, 8_000))], 2)
    assert [[number for number, _ in group] for group in groups] == [[1, 0], [4, 3, 2]]


def test_fewer_parts_than_tasks_leave_no_task_empty() -> None:
    assert [len(group) for group in grouped([(0, part(1))], 8)] == [1]
    assert grouped([], 8) == []


def test_a_member_that_needs_a_shuffle_and_those_that_do_not_share_a_job(shared: ByHand) -> None:
    for name in ("small", "large", "also-small"):
        shared.add(counting(name))
    shared._members["large"].runner.small_batch = -1
    send(shared.broker, 100)
    assert shared.settle() == 1
    for name in ("small", "large", "also-small"):
        assert shared.counts(name) == {f"u{n}": 20 for n in range(5)}
    assert shared._members["large"].runner.pulse.records_in == 100


@pytest.mark.parametrize("method", ["first", "whole", "level"])
def test_whatever_a_task_raises_comes_back_as_data_with_the_time_it_took(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    job = GuardedJob(b"", b"", 1, "broken")

    def crash(*_: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(GuardedJob, "_read", crash)
    monkeypatch.setattr(GuardedJob, "_shards", crash)
    calls: dict[str, Any] = {
        "first": lambda: job.first(0, iter(())),
        "whole": lambda: job.whole(iter(())),
        "level": lambda: job.level(1)(0, iter(())),
    }
    outcome = Outcome()
    for _, data in calls[method]():
        outcome.take(data)
    assert isinstance(outcome.error, TaskFailed)
    assert 'query "broken" failed in a task: MemoryError: no room' in outcome.error.message
    assert outcome.busy_s > 0


def test_the_first_error_of_a_part_is_told() -> None:
    job = GuardedJob(b"", b"", 1, "broken")
    outcome = Outcome()
    for text in ("first", "second"):
        outcome.take(job.give_up(TaskFailed("broken", ValueError(text)))[1])
    assert outcome.error is not None
    assert "first" in outcome.error.message
