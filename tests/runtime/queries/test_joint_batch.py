"""One batch of all members: who fails is set aside, and the others are committed, all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

import potok
from potok import StreamsBuilder
from potok.errors import LogError
from potok.log.kafka.errors import KafkaUnreachable
from potok.retry_policy import MOST_S
from potok.runtime.queries.errors import NotFailed
from potok.runtime.queries.group_query import QueryState
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.lock import QueryTakenOver
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import read_progress
from potok.state.entry import metadata_key_of
from runtime.queries.by_hand import ByHand, counting, send


def test_one_commit_makes_the_batches_of_all_visible(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[set[str]] = []
    publish = shared.broker.publish

    def note(staged: Any, metadata_keys: Mapping[str, Any], *rest: Any, **named: Any) -> None:
        published.append({mark for mark in metadata_keys if mark.endswith("/ledger")})
        publish(staged, metadata_keys, *rest, **named)

    monkeypatch.setattr(shared.broker, "publish", note)
    send(shared.broker, 20)
    shared.add(counting("one"))
    shared.add(counting("two"))
    shared.settle()
    assert published == [{metadata_key_of("one", "ledger"), metadata_key_of("two", "ledger")}]


def failing(name: str, broken: list[str]) -> StreamsBuilder:
    """A query that fails as long as `broken` holds something: its sink is called in the driver."""
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").count(name="counts")

    def refuse(records: Any) -> None:
        if broken:
            raise OSError(broken[0])

    orders.to_callable(refuse, name="refusing", guarantee="at_least_once")
    return builder


def test_a_query_whose_sink_raises_fails_and_the_others_lose_nothing(shared: ByHand) -> None:
    broken = ["the door is shut"]
    shared.add(counting("sound"))
    shared.add(failing("broken", broken))
    send(shared.broker, 10)
    shared.settle()
    found = shared.statuses()
    assert found["sound"].state is QueryState.RUNNING
    assert found["broken"].state is QueryState.FAILED
    assert "the door is shut" in found["broken"].error
    assert sum(shared.counts("sound").values()) == 10
    assert shared.counts("broken") == {}
    progress = read_progress(shared.broker, "broken")
    assert progress is not None
    assert progress.state == "failed"
    with pytest.raises(potok.PotokError, match="the door is shut"):
        shared.wait_caught_up(1, ["broken"])

    send(shared.broker, 10)
    shared.settle()
    assert sum(shared.counts("sound").values()) == 20
    broken.clear()
    shared.retry("broken")
    shared.step()
    assert sum(shared.counts("broken").values()) == 10, "what failed is done again to the same end"
    shared.settle()
    assert sum(shared.counts("broken").values()) == 20
    with pytest.raises(NotFailed):
        shared.retry("broken")


def test_an_unexpected_task_error_is_reported_by_its_query_alone(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    from potok.runtime.batches.stage import Stage

    finish = Stage.finish

    def crash(stage: Any) -> None:
        if stage._spec.query == "broken":
            raise ZeroDivisionError("in a kernel")
        finish(stage)

    shared.add(counting("sound"))
    shared.add(counting("broken"))
    send(shared.broker, 10)
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "finish", crash)
        shared.settle()
    error = shared.statuses()["broken"].error
    assert "ZeroDivisionError: in a kernel" in error
    assert "test_joint_batch.py:" in error
    assert sum(shared.counts("sound").values()) == 10
    shared.retry("broken")
    shared.settle()
    assert sum(shared.counts("broken").values()) == 10


def test_a_worker_that_dies_costs_only_the_query_that_kills_it(shared: ByHand) -> None:
    for name in ("one", "deadly", "two"):
        shared.add(counting(name))
    shared.executor.dies_with = {"deadly"}
    send(shared.broker, 10)
    shared.settle()
    assert shared.executor.jobs == [{"one", "deadly", "two"}, {"one"}, {"deadly"}, {"two"}]
    states = {name: status.state for name, status in shared.statuses().items()}
    assert states == {"one": QueryState.RUNNING, "deadly": QueryState.FAILED, "two": QueryState.RUNNING}
    assert "a Python worker of Spark died" in shared.statuses()["deadly"].error
    assert shared.counts("one") == shared.counts("two") == {f"u{n}": 2 for n in range(5)}


def test_output_that_spark_cannot_publish_costs_only_its_query(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Ledger.commit

    def publishing(ledger: Ledger, *given: Any) -> None:
        if ledger.query == "broken":
            raise RuntimeError("Job aborted due to stage failure")
        commit(ledger, *given)

    monkeypatch.setattr(type(shared.broker), "commits_together", False)
    monkeypatch.setattr(Ledger, "commit", publishing)
    for name in ("broken", "sound"):
        shared.add(counting(name))
    send(shared.broker, 10)
    shared.settle()
    states = {name: status.state for name, status in shared.statuses().items()}
    assert states == {"broken": QueryState.FAILED, "sound": QueryState.RUNNING}
    assert sum(shared.counts("sound").values()) == 10
    monkeypatch.setattr(Ledger, "commit", commit)
    shared.retry("broken")
    shared.settle()
    assert sum(shared.counts("broken").values()) == 10


def test_a_sum_that_overflows_is_tried_again_record_by_record_in_the_same_batch(shared: ByHand) -> None:
    builder = StreamsBuilder("summing")
    builder.stream("orders", value="user string, amount bigint").group_by("user").sum("amount", name="totals")
    shared.add(builder)
    shared.add(counting("counted"))
    send(shared.broker, 2, users=1, amount=2**62)
    assert shared.settle() == 1
    assert shared.executor.jobs == [{"summing", "counted"}, {"summing"}]
    assert list(shared.tables("summing")["totals"].all().values()) == [2**62]
    assert shared.counts("counted") == {"u0": 2}


def test_a_ledger_that_another_process_changed_stops_its_query_and_not_the_commit_of_the_others(shared: ByHand) -> None:
    shared.add(counting("one"))
    shared.add(counting("stolen"))
    send(shared.broker, 10)
    entry = read_entry(shared.broker, "stolen")
    assert entry is not None
    shared.broker.set_metadata({metadata_key_of("stolen", "ledger"): entry.sealed().to_bytes()})
    shared.settle()
    assert shared.statuses()["stolen"].state is QueryState.FAILED
    assert sum(shared.counts("one").values()) == 10


def summing(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    builder.stream("orders", value="user string, amount bigint").group_by("user").sum("amount", name="totals")
    return builder


def overflow(shared: ByHand) -> None:
    """The sum of the first batch overflows, so it is tried again in another epoch."""
    send(shared.broker, 2, users=1, amount=2**62)


def exceed(shared: ByHand) -> None:
    """The first batch reads more bytes than it may, so it is planned again in another epoch."""
    for member in shared._queries.values():
        member.planner.max_bytes = 2_000
    send(shared.broker, 200)


@pytest.mark.parametrize("again", [overflow, exceed])
def test_a_query_that_was_taken_over_before_its_next_attempt_stops_alone(
    shared: ByHand, again: Callable[[ByHand], None]
) -> None:
    shared.add(counting("one"))
    shared.add(summing("stolen"))
    again(shared)
    entry = read_entry(shared.broker, "stolen")
    assert entry is not None
    shared.broker.set_metadata({metadata_key_of("stolen", "ledger"): entry.sealed().to_bytes()})
    shared.settle()
    found = shared.statuses()
    assert (found["stolen"].state, found["one"].state) == (QueryState.FAILED, QueryState.RUNNING)
    assert isinstance(shared._queries["stolen"].error, QueryTakenOver)
    assert found["one"].lag == 0
    assert sum(shared.counts("one").values()) in (2, 200)


@pytest.mark.parametrize("again", [overflow, exceed])
def test_a_query_whose_ledger_is_away_before_its_next_attempt_waits_alone(
    shared: ByHand, again: Callable[[ByHand], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.add(counting("one"))
    shared.add(summing("far"))
    ledger = shared._queries["far"].runner.ledger

    def away(_: Any, **__: Any) -> None:
        raise KafkaUnreachable("far:9092", "no answer")

    def later() -> int:
        return time.time_ns() + int(MOST_S * 1e9)

    again(shared)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "begin_epoch", away)
        shared.step()
        states = {name: found.state for name, found in shared.statuses().items()}
        assert states == {"one": QueryState.RUNNING, "far": QueryState.WAITING}
    monkeypatch.setattr("potok.clock.time", SimpleNamespace(time_ns=later))
    shared.settle()
    assert {found.state for found in shared.statuses().values()} == {QueryState.RUNNING}
    assert {found.lag for found in shared.statuses().values()} == {0}
    assert shared.tables("far")["totals"].all() in ({"u0": 2**62}, {f"u{n}": 40 for n in range(5)})


def test_a_topic_that_is_deleted_under_a_query_stops_that_one(shared: ByHand) -> None:
    send(shared.broker, 10, "gone")
    send(shared.broker, 10)
    shared.add(counting("lost", "gone"))
    shared.add(counting("sound"))
    shared.settle()
    shared.broker.delete_topic("gone")
    send(shared.broker, 10)
    shared.settle()
    found = shared.statuses()
    assert (found["lost"].state, found["sound"].state) == (QueryState.FAILED, QueryState.RUNNING)
    assert "gone" in found["lost"].error
    assert sum(shared.counts("sound").values()) == 20


def test_what_cannot_be_published_for_anybody_ends_the_batch_and_nothing_of_it_is_visible(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise LogError("no space left", hint="")

    shared.add(counting("one"))
    shared.add(counting("two"))
    send(shared.broker, 10)
    monkeypatch.setattr(shared.broker, "publish", full)
    with pytest.raises(LogError, match="no space left"):
        shared.settle()
    assert shared.counts("one") == shared.counts("two") == {}
