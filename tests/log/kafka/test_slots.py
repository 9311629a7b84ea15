"""Output that tasks publish: each task in a transaction of its own, and nothing twice."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import KafkaException

from log.records import batch_of, values
from potok.backends.state_url import StoreNotReady
from potok.log.broker import PublishedBatch, Slots, Staged
from potok.log.errors import MetadataConflict
from potok.log.kafka.append import send
from potok.log.kafka.errors import PublishedInPart
from potok.log.kafka.fences import SLOTS, slot_of
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.producer_records import outgoing
from potok.log.kafka.slots import KafkaSlots
from potok.operators.core.task_report import Report
from potok.records.position import Position
from potok.runtime.batches.task import Item
from potok.runtime.batches.task_output import InProcessOutput, without_output

PARTITIONS = 8


@pytest.fixture
def out(log: KafkaBroker) -> KafkaBroker:
    log.create_topic("by-task", PARTITIONS)
    return log


@pytest.fixture
def query(request: pytest.FixtureRequest) -> str:
    return f"query-{abs(hash(request.node.nodeid))}"


def staged_of(log: KafkaBroker, number: int, task: int) -> list[Staged]:
    """What one task stages in one batch: a record for each partition."""
    return [
        replace(log.stage(None, "by-task", part, batch_of([b"%d/%d/%d" % (number, task, part)])), by_task=True)
        for part in range(PARTITIONS)
    ]


def output_of(log: KafkaBroker, number: int, tasks: int = 2) -> InProcessOutput:
    total, items = Report(), list[list[Item]]()
    for task in range(tasks):
        items.append([(task, pickle.dumps(Report(staged=staged_of(log, number, task))))])
        for _, data in without_output(items[-1]):
            report = pickle.loads(data)
            assert report.staged == [], "only counts pass through the driver"
            total.add(report)
    return InProcessOutput(items, total)


def ledger(query: str, number: int) -> tuple[dict[str, bytes | None], dict[str, bytes | None], PublishedBatch]:
    """The ledger after a batch, before it, and the batch."""
    before = None if number == 1 else b"%d" % (number - 1)
    key = f"{query}/ledger"
    return {key: b"%d" % number}, {key: before}, PublishedBatch(query, number, {"in": {0: number * 10}})


def publish(log: KafkaBroker, query: str, number: int, output: InProcessOutput | Broken | None = None) -> None:
    after, before, batch = ledger(query, number)
    log.publish([], after, before, batch, output=output or output_of(log, number))


def visible(log: KafkaBroker) -> list[bytes]:
    return [value for part in range(PARTITIONS) for value in values(log, "by-task", part)]


def expected(*numbers: int, tasks: int = 2) -> Counter[bytes]:
    return Counter(b"%d/%d/%d" % (n, t, p) for n in numbers for t in range(tasks) for p in range(PARTITIONS))


@dataclass
class Broken:
    """Output of which only the first slots are published before the driver dies."""

    whole: InProcessOutput
    slots: int
    published: list[int] = field(default_factory=list)
    topics: Sequence[str] = ("by-task",)

    def publish(self, slots: Slots) -> Position:
        return self.whole.publish(Counting(slots, self))

    def release(self) -> None: ...


@dataclass
class Counting:
    slots: Slots
    broken: Broken
    count: int = SLOTS

    def slot_of(self, staged: Staged) -> int:
        return self.slots.slot_of(staged)

    def publish(self, slot: int, staged: Sequence[Staged]) -> Position:
        if len(self.broken.published) == self.broken.slots:
            raise MetadataConflict("the driver has died")
        self.broken.published.append(slot)
        return self.slots.publish(slot, staged)


def test_tasks_publish_the_output_of_a_batch_in_order(out: KafkaBroker, query: str) -> None:
    for number in (1, 2):
        publish(out, query, number)
    found = visible(out)
    assert Counter(found) == expected(1, 2)
    assert [one for one in found if one.endswith(b"/3")] == [b"1/0/3", b"1/1/3", b"2/0/3", b"2/1/3"]
    assert out.get_metadata(f"{query}/ledger") == b"2"


def test_the_position_after_the_output_is_that_of_all_tasks(out: KafkaBroker, query: str) -> None:
    found: list[Position] = []
    after, before, batch = ledger(query, 1)
    out.publish([], after, before, batch, lambda position: found.append(position) or {}, output_of(out, 1))  # type: ignore[func-returns-value]
    assert found[0].topics.keys() == {"by-task"}
    assert all(end >= 2 for end in found[0].topics["by-task"].values())
    assert len(found[0].topics["by-task"]) == PARTITIONS


@pytest.mark.parametrize("done", [1, 3])
def test_a_batch_of_which_some_slots_are_visible_is_completed(out: KafkaBroker, query: str, done: int) -> None:
    publish(out, query, 1)
    broken = Broken(output_of(out, 2), done)
    with pytest.raises(MetadataConflict):
        publish(out, query, 2, broken)
    assert len(broken.published) == done
    assert out.get_metadata(f"{query}/ledger") == b"1"
    again = KafkaBroker(out.options, out.directory)
    publish(again, query, 2)
    publish(again, query, 3)
    assert Counter(visible(again)) == expected(1, 2, 3)


def test_a_driver_on_one_machine_completes_the_batch_of_a_cluster(out: KafkaBroker, query: str) -> None:
    with pytest.raises(MetadataConflict):
        publish(out, query, 1, Broken(output_of(out, 1), 2))
    after, before, batch = ledger(query, 1)
    beside = out.stage(None, "by-task", 0, batch_of([b"a dead letter"]))
    staged = [*staged_of(out, 1, 0), *staged_of(out, 1, 1), beside]
    KafkaBroker(out.options, out.directory).publish(staged, after, before, batch)
    assert Counter(visible(out)) == expected(1) + Counter([b"a dead letter"])


def test_a_task_that_outlives_its_driver_writes_nothing_after_a_driver_on_one_machine(
    out: KafkaBroker, query: str
) -> None:
    publish(out, query, 1)
    after, before, batch = ledger(query, 2)
    paused, staged = KafkaBroker(out.options, out.directory), [*staged_of(out, 2, 0), *staged_of(out, 2, 1)]
    life, slot = paused._life(query), slot_of("by-task", 0)
    producer = paused._kafka.transactor(query, life, slot)._ready(lambda: None)
    producer.begin_transaction()
    for output in staged:
        if slot_of(output.topic, output.partition) == slot:
            for record in outgoing(output.rows()):  # type: ignore[attr-defined]
                send(producer, output.topic, output.partition, record, None)
    producer.flush(30)
    KafkaBroker(out.options, out.directory).publish(staged, after, before, batch)
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert Counter(visible(out)) == expected(1, 2)


def test_a_cluster_does_not_repeat_the_batch_of_a_driver_on_one_machine(out: KafkaBroker, query: str) -> None:
    after, before, batch = ledger(query, 1)
    out.publish([*staged_of(out, 1, 0), *staged_of(out, 1, 1)], after, before, batch)
    out.home.set_metadata({f"{query}/ledger": None})
    publish(KafkaBroker(out.options, out.directory), query, 1)
    assert Counter(visible(out)) == expected(1)
    assert out.get_metadata(f"{query}/ledger") == b"1"


def test_a_task_of_a_driver_that_was_replaced_writes_nothing(out: KafkaBroker, query: str) -> None:
    publish(out, query, 1)
    paused, late = KafkaBroker(out.options, out.directory), staged_of(out, 2, 0)
    _, before, batch = ledger(query, 2)
    slots = KafkaSlots(paused, batch, paused._life(query), before)
    publish(KafkaBroker(out.options, out.directory), query, 2)
    with pytest.raises(MetadataConflict):
        slots.publish(slot_of("by-task", 0), late[:1])
    publish(out, query, 3)
    assert Counter(visible(out)) == expected(1, 2, 3)


def test_a_topic_partition_is_always_in_the_same_slot() -> None:
    assert [slot_of("orders", part) for part in range(6)] == [6, 0, 10, 12, 15, 9]


def test_no_slot_is_published_of_a_task_that_has_failed_when_it_ran_again(out: KafkaBroker, query: str) -> None:
    """Spark runs a task again whose output was lost with its executor."""
    whole = output_of(out, 1)
    lost = InProcessOutput(
        [
            [(0, pickle.dumps(Report(staged=staged_of(out, 1, 0))))],
            [(1, pickle.dumps(StoreNotReady("the state", "", "")))],
        ],
        Report(kept=Counter({"by-task": 2 * PARTITIONS})),
    )
    with pytest.raises(StoreNotReady):
        publish(out, query, 1, lost)
    publish(out, query, 1, whole)
    assert Counter(visible(out)) == expected(1)


def test_a_batch_that_is_published_in_part_must_be_completed_before_a_query_is_replaced(
    out: KafkaBroker, query: str
) -> None:
    with pytest.raises(MetadataConflict):
        publish(out, query, 1, Broken(output_of(out, 1), 1))
    with pytest.raises(PublishedInPart, match="batch 1"):
        KafkaBroker(out.options, out.directory).published(query)
    publish(KafkaBroker(out.options, out.directory), query, 1)
    assert KafkaBroker(out.options, out.directory).published(query) == ledger(query, 1)[2]


def test_a_query_with_a_name_like_a_slot_does_not_fence_its_tasks(out: KafkaBroker, query: str) -> None:
    slot = slot_of("by-task", 0)
    _, before, batch = ledger(query, 1)
    slots = KafkaSlots(out, batch, out._life(query), before)
    staged = staged_of(out, 1, 0)[:1]
    transactor = out._kafka.transactor(query, slots.life, slot)
    slots.publish(slot, staged)
    producer = transactor._producer
    after, none, other = ledger(f"{query}-slot-{slot}", 1)
    out.publish(staged_of(out, 7, 7)[1:2], after, none, other)
    _, _, following = ledger(query, 2)
    replace(slots, batch=following).publish(slot, staged)
    assert transactor._producer is producer, "it was not fenced"


def test_a_process_that_runs_a_query_again_skips_what_another_one_has_published_since(
    out: KafkaBroker, query: str
) -> None:
    publish(out, query, 1)
    after, before, batch = ledger(query, 2)
    staged = [*staged_of(out, 2, 0), *staged_of(out, 2, 1)]
    KafkaBroker(out.options, out.directory).publish(staged, after, before, replace(batch, epoch=2))
    out.home.set_metadata({f"{query}/ledger": b"1"})
    out.publish([], after, before, replace(batch, epoch=3), output=output_of(out, 2))
    assert Counter(visible(out)) == expected(1, 2)
