"""A batch that was started is run again to the same end: always in one process, and after a crash where a sink needs
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.errors import LogError
from potok.runtime.operations.reset_offsets import reset
from potok.runtime.queries.group_query import QueryState
from potok.snapshots.ledger_view import read_entry
from runtime.queries.by_hand import ByHand, counting, send


def calling(name: str, batches: list[int], guarantee: str = "at_least_once") -> StreamsBuilder:
    """Counts, and calls a function with each batch before it is committed."""
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").count(name="counts")
    orders.to_callable(lambda records: batches.append(len(list(records))), name="sink", guarantee=guarantee)
    return builder


def total(group: ByHand, name: str = "one") -> int:
    return sum(group.counts(name).values())


def test_after_a_crash_a_sink_gets_the_pending_batch(tmp_path: Path) -> None:
    first, batches = ByHand(tmp_path), list[int]()
    first.add(calling("one", batches))
    send(first.broker, 10)
    assert first.plan()
    send(first.broker, 10)
    first.kill()

    second = ByHand(tmp_path)
    second.add(calling("one", batches))
    second.step()
    assert (total(second), batches) == (10, [10])
    second.settle()
    assert (total(second), batches) == (20, [10, 10])
    second.stop()


@pytest.mark.parametrize("program", [counting, lambda name: calling(name, [], "at_most_once")])
def test_where_nothing_is_visible_before_the_commit_the_end_of_a_batch_is_not_recorded(
    tmp_path: Path, program: Any
) -> None:
    first = ByHand(tmp_path)
    first.add(program("one"))
    send(first.broker, 10)
    assert first.plan()
    send(first.broker, 10)
    first.kill()

    second = ByHand(tmp_path)
    second.add(program("one"))
    assert second.settle() == 1
    assert total(second) == 20
    second.stop()


def test_a_batch_that_failed_has_the_same_end_when_it_is_run_again(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise LogError("no space left", hint="")

    shared.add(counting("one"))
    send(shared.broker, 10)
    with monkeypatch.context() as patched:
        patched.setattr(shared.broker, "publish", full)
        with pytest.raises(LogError):
            shared.step()
    send(shared.broker, 10)
    shared.step()
    assert total(shared) == 10
    shared.settle()
    assert total(shared) == 20


def test_cells_of_a_batch_that_failed_do_not_count_after_its_query_was_stopped(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(records: Any) -> None:
        raise ConnectionError("the door is shut")

    builder = StreamsBuilder("one")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").count(name="counts")
    orders.to_callable(away, name="door", guarantee="at_least_once")
    shared.add(builder)
    send(shared.broker, 10)
    shared.step()
    assert shared.statuses()["one"].state is QueryState.WAITING
    shared.remove("one")
    entry = read_entry(shared.broker, "one")
    assert entry is not None
    assert not entry.clean
    shared.add(calling("one", []))
    shared.settle()
    assert total(shared) == 10


def test_a_query_that_was_reset_forgets_the_pending_batch(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    send(first.broker, 10)
    first.add(calling("one", []))
    first.settle()
    send(first.broker, 10)
    assert first.plan()
    first.kill()
    reset(first.broker, "one", lambda: {"orders": {0: 0, 1: 0}}, drop_state=True, keep_state=False)

    second = ByHand(tmp_path)
    second.add(calling("one", []))
    assert second.settle() == 1
    assert total(second) == 20
    second.stop()


def test_a_batch_that_was_committed_before_the_crash_is_not_run_again(tmp_path: Path) -> None:
    first, batches = ByHand(tmp_path), list[int]()
    first.add(calling("one", batches))
    send(first.broker, 10)
    first.settle()
    first.kill()

    second = ByHand(tmp_path)
    second.add(calling("one", batches))
    assert second.settle() == 0
    assert (total(second), batches, second.batch_of("one")) == (10, [10], 1)
    second.stop()


def test_a_batch_of_topics_that_the_program_no_longer_reads_is_forgotten(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    first.add(calling("one", []))
    send(first.broker, 10)
    assert first.plan()
    first.kill()

    second = ByHand(tmp_path)
    send(second.broker, 5, "others")
    second.add(counting("one", "others"))
    second.settle()
    assert total(second) == 5
    second.stop()
