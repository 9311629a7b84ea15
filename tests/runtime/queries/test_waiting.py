"""A member whose server or sink is away waits and tries again, while the others run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.backends.state_url import StoreUnreachable
from potok.log.kafka.errors import KafkaUnreachable
from potok.retry_policy import MOST_S, is_brief
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.queries.group_query import QueryState
from potok.runtime.queries.lock import QueryTakenOver
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.progress import Progress, read_progress
from potok.state.entry import metadata_key_of
from runtime.queries.by_hand import ByHand, counting, send

RETRY_FOR_MS = 60_000


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in ("clock", "retry_policy", "runtime.queries.group_query"):
        monkeypatch.setattr(f"potok.{module}.time", found)
    return found


@pytest.fixture
def waiting(tmp_path: Path, clock: Clock) -> Iterator[ByHand]:
    found = ByHand(tmp_path, retry_for_ms=RETRY_FOR_MS)
    yield found
    found.stop()
    found.broker.close()


class Door:
    """A sink that is shut for so many calls, and notes how many records each call brought that it took."""

    def __init__(self, shut_for: int, then: Exception | None = None) -> None:
        self.shut_for, self.then, self.calls = shut_for, then, 0
        self.taken: list[int] = []

    def take(self, records: Any) -> None:
        self.calls += 1
        if self.calls <= self.shut_for:
            raise ConnectionError("the door is shut")
        if self.then is not None:
            raise self.then
        self.taken.append(len(list(records)))


def behind(door: Door, name: str = "waiting") -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").count(name="counts")
    orders.to_callable(door.take, name="door", guarantee="at_least_once")
    return builder


def progress_of(shared: ByHand, name: str) -> Progress:
    found = read_progress(shared.broker, name)
    assert found is not None
    return found


def test_a_query_waits_for_its_sink_and_repeats_its_batch_while_the_others_advance(
    waiting: ByHand, clock: Clock
) -> None:
    door = Door(shut_for=3)
    waiting.add(behind(door))
    waiting.add(counting("sound"))
    for rounds in range(1, 4):
        send(waiting.broker, 10)
        waiting.settle()
        assert door.calls == rounds, "once for each time that it is due"
        assert sum(waiting.counts("sound").values()) == 10 * rounds
        found = waiting.statuses()["waiting"]
        assert found.state is QueryState.WAITING
        assert "the door is shut" in found.error
        assert (progress_of(waiting, "waiting").state, waiting.counts("waiting")) == ("waiting", {})
        clock.now += MOST_S
    waiting.settle()
    assert door.taken == [10, 20], "the share that failed comes again to the same end"
    assert waiting.counts("waiting") == waiting.counts("sound") == {f"u{n}": 6 for n in range(5)}
    assert {found.state for found in waiting.statuses().values()} == {QueryState.RUNNING}
    assert waiting.statuses()["waiting"].error == ""
    reported = progress_of(waiting, "waiting")
    assert (reported.state, reported.error, reported.total_in) == ("running", "", 30)


def test_a_query_fails_when_its_retries_are_exhausted_and_loses_nothing(waiting: ByHand, clock: Clock) -> None:
    door = Door(shut_for=1_000)
    waiting.add(behind(door))
    send(waiting.broker, 10)
    began = clock.now
    while waiting.settle() and waiting.statuses()["waiting"].state is QueryState.WAITING:
        clock.now += MOST_S
    assert waiting.statuses()["waiting"].state is QueryState.FAILED
    assert "the door is shut" in waiting.statuses()["waiting"].error
    assert progress_of(waiting, "waiting").state == "failed"
    assert RETRY_FOR_MS / 1000 - 2 * MOST_S <= clock.now - began <= RETRY_FOR_MS / 1000
    assert waiting.settle() == 0

    send(waiting.broker, 10)
    door.shut_for = 0
    waiting.retry("waiting")
    waiting.settle()
    assert door.taken == [10, 10]
    assert waiting.counts("waiting") == {f"u{n}": 4 for n in range(5)}


def test_backoff_restarts_with_each_outage(waiting: ByHand, clock: Clock) -> None:
    door = Door(shut_for=0)
    waiting.add(behind(door))
    for _ in range(3):
        door.shut_for = door.calls + 5
        send(waiting.broker, 10)
        while waiting.settle() and waiting.statuses()["waiting"].state is QueryState.WAITING:
            clock.now += MOST_S
        clock.now += RETRY_FOR_MS / 1000
    assert door.taken == [10, 10, 10]
    assert waiting.statuses()["waiting"].state is QueryState.RUNNING


def test_a_query_waits_for_the_server_of_its_state(
    waiting: ByHand, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from potok.runtime.batches.stage import Stage

    finish = Stage.finish

    def away(stage: Any) -> None:
        if stage._spec.query == "far":
            raise StoreUnreachable("redis://far", "connection refused")
        finish(stage)

    waiting.add(counting("sound"))
    waiting.add(counting("far"))
    send(waiting.broker, 10)
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "finish", away)
        waiting.settle()
    assert waiting.statuses()["far"].state is QueryState.WAITING
    assert "redis://far" in waiting.statuses()["far"].error
    assert progress_of(waiting, "far").state == "waiting"
    clock.now += MOST_S
    waiting.settle()
    assert waiting.counts("far") == waiting.counts("sound") == {f"u{n}": 2 for n in range(5)}
    assert waiting.statuses()["far"].state is QueryState.RUNNING


def test_a_commit_that_kafka_does_not_answer_is_made_again_and_counts_once(
    waiting: ByHand, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(waiting.broker), "commits_together", False)
    waiting.add(counting("sound"))
    waiting.add(counting("far"))
    ledger = waiting._queries["far"].runner.ledger
    commit, tries = ledger.commit, list[int]()

    def away(*args: Any) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise KafkaUnreachable("far:9092", "no answer")
        commit(*args)

    monkeypatch.setattr(ledger, "commit", away)
    send(waiting.broker, 10)
    waiting.settle()
    assert waiting.statuses()["far"].state is QueryState.WAITING
    assert sum(waiting.counts("sound").values()) == 10
    for _ in range(2):
        clock.now += MOST_S
        waiting.settle()
    assert waiting.counts("far") == waiting.counts("sound")
    assert (len(tries), progress_of(waiting, "far").total_in) == (3, 10)


def test_a_topic_that_cannot_be_planned_is_waited_for_and_needs_no_new_records(
    waiting: ByHand, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.add(counting("sound"))
    waiting.add(counting("far", "distant"))
    ends = waiting.broker.end_offsets_of

    def away(topics: Any) -> Mapping[str, Mapping[int, int]]:
        if "distant" in topics:
            raise KafkaUnreachable("far:9092", "no answer")
        return ends(topics)

    send(waiting.broker, 10)
    with monkeypatch.context() as patched:
        patched.setattr(waiting.broker, "end_offsets_of", away)
        waiting.settle()
        assert waiting.statuses()["far"].state is QueryState.WAITING
        assert sum(waiting.counts("sound").values()) == 10
    clock.now += MOST_S
    waiting.settle()
    assert waiting.statuses()["far"].state is QueryState.RUNNING
    assert progress_of(waiting, "far").state == "running"


def test_queries_are_shown_as_waiting_while_the_log_does_not_answer_whatever_their_batch_is_in(
    waiting: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.add(counting("one"))
    send(waiting.broker, 10)
    waiting.settle()
    send(waiting.broker, 10)
    brief: list[bool] = []

    def away(_: Any) -> Any:
        brief.append(is_brief())
        raise KafkaUnreachable("far:9092", "no answer")

    with monkeypatch.context() as patched:
        patched.setattr(waiting.broker, "end_offsets_of", away)
        found = waiting.statuses()["one"]
        assert (found.state, found.lag) == (QueryState.WAITING, 0)
        assert "far:9092" in found.error
    assert brief == [True], "whoever looks is not kept waiting"
    found = waiting.statuses()["one"]
    assert (found.state, found.lag, found.error) == (QueryState.RUNNING, 10, "")


def test_a_query_that_waits_can_be_paused_and_tries_at_once_when_it_is_resumed(waiting: ByHand) -> None:
    door = Door(shut_for=1)
    waiting.add(behind(door))
    send(waiting.broker, 10)
    waiting.settle()
    waiting.pause("waiting")
    found = waiting.statuses()["waiting"]
    assert (found.state, found.error) == (QueryState.PAUSED, "")
    assert waiting.settle() == 0
    waiting.resume("waiting")
    waiting.settle()
    assert door.taken == [10]


def test_a_query_that_waits_can_be_removed_and_its_batch_is_repeated_when_it_is_back(waiting: ByHand) -> None:
    door = Door(shut_for=1)
    waiting.add(behind(door))
    send(waiting.broker, 10)
    waiting.settle()
    waiting.remove("waiting")
    send(waiting.broker, 10)
    waiting.add(behind(door))
    waiting.settle()
    assert door.taken == [10, 10]


def test_all_queries_wait_where_nothing_can_be_published(shared: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.0)
    shared.add(counting("one"))
    shared.add(counting("two"))
    publish = shared.broker.publish
    seen: list[set[QueryState]] = []

    def away(*args: Any, **named: Any) -> None:
        seen.append({found.state for found in shared.statuses().values()})
        if len(seen) < 3:
            raise KafkaUnreachable("far:9092", "no answer")
        publish(*args, **named)

    monkeypatch.setattr(shared.broker, "publish", away)
    send(shared.broker, 10)
    shared.settle()
    assert seen == [{QueryState.RUNNING}, {QueryState.WAITING}, {QueryState.WAITING}]
    assert {found.state for found in shared.statuses().values()} == {QueryState.RUNNING}
    for name in ("one", "two"):
        assert shared.counts(name) == {f"u{n}": 2 for n in range(5)}
        assert progress_of(shared, name).total_in == 10


def test_a_passing_error_after_the_commit_does_not_make_a_query_wait(
    waiting: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.add(counting("one"))

    def away(*_: Any, **__: Any) -> None:
        raise KafkaUnreachable("far:9092", "no answer")

    monkeypatch.setattr(BatchRunner, "finish", away)
    send(waiting.broker, 10)
    assert waiting.settle() == 1
    assert waiting.statuses()["one"].state is QueryState.RUNNING
    assert sum(waiting.counts("one").values()) == 10


def test_a_permanent_error_fails_a_query_immediately_also_while_it_waits(waiting: ByHand, clock: Clock) -> None:
    door = Door(shut_for=1, then=ValueError("there is no door"))
    waiting.add(behind(door))
    send(waiting.broker, 10)
    waiting.settle()
    assert waiting.statuses()["waiting"].state is QueryState.WAITING
    clock.now += MOST_S
    waiting.settle()
    found = waiting.statuses()["waiting"]
    assert found.state is QueryState.FAILED
    assert "there is no door" in found.error


def test_a_query_that_was_taken_over_does_not_wait_and_leaves_what_the_other_process_has_staged(
    waiting: ByHand,
) -> None:
    door = Door(shut_for=1)
    waiting.add(behind(door))
    send(waiting.broker, 10)
    entry = read_entry(waiting.broker, "waiting")
    assert entry is not None
    waiting.broker.set_metadata({metadata_key_of("waiting", "ledger"): entry.sealed().to_bytes()})
    staged = waiting._queries["waiting"].prepared.directory / "staging" / "2-1" / "output.staged"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"output of the batch that the other is in")
    waiting.settle()
    assert waiting.statuses()["waiting"].state is QueryState.FAILED
    assert isinstance(waiting._queries["waiting"].error, QueryTakenOver)
    assert staged.exists()
