from __future__ import annotations

import logging
import pickle
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from log.records import batch_of, values
from potok.log.broker import PublishedBatch
from potok.log.errors import MetadataConflict, TopicNotFound
from potok.log.kafka import transactions
from potok.log.kafka.errors import PublishedOtherwise, QueryFenced
from potok.log.kafka.fences import TOPIC
from potok.log.kafka.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


@pytest.fixture
def query(request: pytest.FixtureRequest) -> str:
    return f"query-{abs(hash(request.node.nodeid))}"


def publish(log: KafkaBroker, query: str, number: int, *output: bytes, offset: int | None = None) -> None:
    """Batch `number`, which has read as far as `offset` of topic "in"; the ledger is a mark that counts."""
    before = None if number == 1 else b"%d" % (number - 1)
    batch = PublishedBatch(query, number, {"in": {0: number * 10 if offset is None else offset}})
    staged = [log.stage(log.directory, "out", 0, batch_of(list(output)))]
    log.publish(staged, {f"{query}/ledger": b"%d" % number}, {f"{query}/ledger": before}, batch)


def reopened(log: KafkaBroker) -> KafkaBroker:
    """The same broker in another process, so to speak."""
    return KafkaBroker(log.options, log.directory)


def forget(log: KafkaBroker, query: str, number: int) -> None:
    """As if the process had died between the transaction and the ledger."""
    log.home.set_metadata({f"{query}/ledger": None if number == 0 else b"%d" % number})


@pytest.fixture
def out(log: KafkaBroker) -> KafkaBroker:
    for topic in ("in", "out"):
        log.create_topic(topic)
    return log


def test_output_that_has_no_directory_travels_whole_however_large_it_is(out: KafkaBroker) -> None:
    staged = out.stage(None, "out", 0, batch_of([b"x" * 100] * 4_000))
    assert staged.path is None
    out.publish([pickle.loads(pickle.dumps(staged))], {})
    assert values(out, "out") == [b"x" * 100] * 4_000


def test_batches_are_published_one_after_the_other(out: KafkaBroker, query: str) -> None:
    for number in range(1, 4):
        publish(out, query, number, b"%d" % number)
        assert values(out, "out")[-1] == b"%d" % number
    assert values(out, "out") == [b"1", b"2", b"3"]
    assert out.get_metadata(f"{query}/ledger") == b"3"


def test_the_progress_of_a_query_is_that_of_a_group(out: KafkaBroker, query: str) -> None:
    publish(out, query, 1, b"a")
    publish(out, query, 2)
    out._kafka.progress.settle()
    assert out.committed(query, "in") == {0: 20}
    assert out.describe_group(query).committed == {"in": {0: 20}}


@pytest.mark.parametrize("crash", ["same process", "another process"])
def test_a_batch_that_kafka_holds_is_not_published_again(out: KafkaBroker, query: str, crash: str) -> None:
    publish(out, query, 1, b"a")
    publish(out, query, 2, b"b")
    forget(out, query, 1)
    log = out if crash == "same process" else reopened(out)
    publish(log, query, 2, b"b")
    publish(log, query, 3, b"c")
    assert values(log, "out") == [b"a", b"b", b"c"]
    assert log.get_metadata(f"{query}/ledger") == b"3"


def test_the_fence_is_found_behind_those_of_other_queries(out: KafkaBroker, query: str, tmp_path: Path) -> None:
    publish(out, query, 1, b"a")
    for number in range(1, 6):
        publish(out, f"{query}-other", number, b"x")
    forget(out, query, 0)
    publish(reopened(out), query, 1, b"a")
    assert values(out, "out").count(b"a") == 1


def test_an_open_transaction_of_another_query_does_not_hide_the_fence(
    out: KafkaBroker, query: str, stranger: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(out, query, 1, b"a")
    stranger.begin_transaction()
    stranger.produce(TOPIC, b"{}", b"somebody", 0)
    stranger.flush(30)
    monkeypatch.setattr("potok.log.kafka.admin.offsets._VISIBLE_S", 0.0)
    publish(out, query, 2, b"b")
    forget(out, query, 1)
    fences = reopened(out)._kafka.fences
    looks = 0

    def end_the_other(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            stranger.commit_transaction(30)

    monkeypatch.setattr("potok.log.kafka.fences.time.sleep", end_the_other)
    found = fences.read(query)
    assert looks > 0
    assert found[None].number == 2


def test_a_second_process_fences_the_first_off(out: KafkaBroker, query: str) -> None:
    publish(out, query, 1, b"a")
    rival = reopened(out)
    publish(rival, query, 2, b"b")
    batch = PublishedBatch(query, 3, {"in": {0: 30}})
    with pytest.raises(QueryFenced, match=f'output of query "{query}"'):
        out.publish([out.stage(out.directory, "out", 0, batch_of([b"zombie"]))], {"m": b"1"}, {}, batch)
    assert values(rival, "out") == [b"a", b"b"]
    assert rival.get_metadata("m") is None


def test_a_ledger_that_moved_on_stops_the_publish_before_kafka_hears_of_it(out: KafkaBroker, query: str) -> None:
    publish(out, query, 1, b"a")
    forget(out, query, 7)
    with pytest.raises(MetadataConflict):
        publish(out, query, 2, b"b")
    assert values(out, "out") == [b"a"]


def test_a_query_that_starts_again_without_its_ledger_publishes_again(
    out: KafkaBroker, query: str, tmp_path: Path
) -> None:
    publish(out, query, 1, b"a")
    publish(out, query, 2, b"b")
    elsewhere = KafkaBroker(out.options, tmp_path / "elsewhere")
    publish(elsewhere, query, 1, b"a")
    publish(elsewhere, query, 2, b"b")
    assert values(elsewhere, "out") == [b"a", b"b", b"a", b"b"]


def test_a_batch_that_holds_other_records_than_the_published_one_is_not_passed_over(
    out: KafkaBroker, query: str
) -> None:
    publish(out, query, 1, b"a")
    forget(out, query, 0)
    with pytest.raises(PublishedOtherwise, match="its ledger was lost"):
        publish(reopened(out), query, 1, b"a", b"and more", offset=15)
    assert out.get_metadata(f"{query}/ledger") is None


def test_an_older_ledger_that_was_restored_is_followed_with_a_warning(
    out: KafkaBroker, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        publish(out, query, number, b"%d" % number)
    forget(out, query, 1)
    with caplog.at_level(logging.WARNING):
        publish(reopened(out), query, 2, b"2")
    assert "output may be duplicated" in caplog.text
    assert values(out, "out") == [b"1", b"2", b"3", b"2"]


def test_members_of_a_group_of_the_same_name_keep_their_offsets(
    out: KafkaBroker, kafka: ServerStatus, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    member = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": query, "session.timeout.ms": 6000})
    member.subscribe(["in"])
    while not member.assignment():
        member.poll(0.05)
    with caplog.at_level(logging.WARNING):
        publish(out, query, 1, b"a")
        out._kafka.progress.settle()
    member.close()
    assert "has members" in caplog.text
    assert values(out, "out") == [b"a"]
    assert out.committed(query, "in") == {}


def test_a_transaction_that_fails_is_undone_and_tried_again(
    out: KafkaBroker, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(out, query, 1, b"a")
    attempts: list[KafkaError] = [
        KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, txn_requires_abort=True),
        KafkaError(KafkaError._TIMED_OUT, retriable=True),
        KafkaError(KafkaError._FATAL, fatal=True),
    ]
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.0)
    flush = transactions.Delivery

    def failing(count: int) -> transactions.Delivery:
        """The output is on its way, and then something happens."""
        delivery = flush(count)
        if attempts:
            delivery.error = attempts.pop(0)
        return delivery

    monkeypatch.setattr(transactions, "Delivery", failing)
    publish(out, query, 2, b"b")
    assert attempts == []
    assert values(out, "out") == [b"a", b"b"]


def test_a_failure_that_stays_is_raised_and_leaves_nothing_behind(
    out: KafkaBroker, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(count: int) -> transactions.Delivery:
        delivery = kind(count)
        delivery.error, delivery.failed_topic = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), "out"
        return delivery

    kind = transactions.Delivery
    monkeypatch.setattr(transactions, "Delivery", failing)
    with pytest.raises(TopicNotFound):
        publish(out, query, 1, b"a")
    monkeypatch.undo()
    assert out.get_metadata(f"{query}/ledger") is None
    publish(out, query, 1, b"a")
    assert values(out, "out") == [b"a"]


def test_a_commit_whose_answer_is_lost_is_not_repeated(
    out: KafkaBroker, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(out, query, 1, b"a")
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.0)
    retrying = transactions._retrying
    lost = [KafkaError(KafkaError._FATAL, "the answer is lost", fatal=True)]

    def lose(step: object) -> None:
        retrying(step)
        if lost and "commit_transaction" in step.__code__.co_names:
            raise KafkaException(lost.pop())

    monkeypatch.setattr(transactions, "_retrying", lose)
    publish(out, query, 2, b"b")
    assert lost == []
    assert values(out, "out") == [b"a", b"b"]


PROGRAM = """
from potok.log.open import open_broker
from potok.log.broker import PublishedBatch

log = open_broker("{url}?home=" + DATA)
done = int(log.get_metadata("ledger") or 0)
for number in range(done + 1, 5):
    rows = pa.record_batch({{"value": pa.array([b"%d" % number] * 2000, pa.binary())}})
    staged = [log.stage(log.directory / "staging", topic, 0, rows) for topic in ("out", "in")]
    marks, expect = {{"ledger": b"%d" % number}}, {{"ledger": b"%d" % done if done else None}}
    log.publish(staged, marks, expect, PublishedBatch("{query}", number, {{"in": {{0: number}}}}))
    done = number
    say(number)
"""


@pytest.mark.kill
@pytest.mark.parametrize("failpoint", ["log.publish.written:3", "log.publish.sent:3"])
def test_a_process_killed_around_the_commit_loses_nothing_and_repeats_nothing(
    out: KafkaBroker, kafka: ServerStatus, query: str, run, failpoint: str
) -> None:
    program = PROGRAM.format(url=kafka.url, query=query)
    killed = run(program, failpoint)
    assert killed.returncode == -9
    assert killed.stdout.split() == ["1", "2"]
    finished = run(program)
    assert finished.returncode == 0, finished.stderr
    for topic in ("out", "in"):
        assert values(out, topic) == [b"%d" % number for number in range(1, 5) for _ in range(2000)]


def test_a_process_that_lost_its_ledger_before_it_opened_its_transactions_publishes_nothing(
    out: KafkaBroker, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(out, query, 1, b"a")
    late, pauses = reopened(out), ["log.publish.owned"]

    def taken_over(name: str) -> None:
        if name in pauses:
            pauses.remove(name)
            publish(out, query, 2, b"b")
            publish(out, query, 3, b"c")

    monkeypatch.setattr("potok.log.kafka.transactions.failpoint", taken_over)
    with pytest.raises(MetadataConflict):
        publish(late, query, 2, b"b")
    assert values(out, "out") == [b"a", b"b", b"c"]
    publish(out, query, 4, b"d")
    assert values(out, "out") == [b"a", b"b", b"c", b"d"]


def test_the_owner_of_the_ledger_continues_after_a_fence_by_another_process(out: KafkaBroker, query: str) -> None:
    publish(out, query, 1, b"a")
    reopened(out).published(query)
    publish(out, query, 2, b"b")
    assert values(out, "out") == [b"a", b"b"]


def test_a_producer_that_learns_it_was_fenced_off_between_two_records_recovers(
    out: KafkaBroker, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(out, query, 1, b"a")
    reopened(out).published(query)
    send, failures = transactions.send, []

    def answered(producer: Producer, *arguments: Any) -> None:
        try:
            send(producer, *arguments)
        except KafkaException as error:
            failures.append(error.args[0].code())
            raise
        with suppress(KafkaException, SystemError):
            producer.flush(30)

    monkeypatch.setattr(transactions, "send", answered)
    publish(out, query, 2, b"b", b"c")
    assert failures == [KafkaError._FATAL]
    assert values(out, "out") == [b"a", b"b", b"c"]
