"""Groups and queues on a real Kafka."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from log.records import read_all
from log.waiting import until
from potok.log.broker import Broker
from potok.log.clients.consumer import Consumer
from potok.log.consumer_groups import PartitionId
from potok.log.errors import GroupHasMembers, PartitionsMovedError
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.queues.queue import Queue
from potok.log.queues.queue_state import QueueCounts
from potok.records.log_record import LogRecord

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = KafkaBroker.at(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new one for each test, with four partitions and five records in each."""
    name = f"groups-{uuid.uuid4().hex}"
    broker.create_topic(name, 4)
    for partition in range(4):
        broker.append(name, [LogRecord(None, b"%d:%d" % (partition, n)) for n in range(5)], partition)
    return name


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex}"


@pytest.fixture
def members() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def polled(consumer: Consumer, count: int) -> list[str | None]:
    found: list[str | None] = []

    def enough() -> bool:
        found.extend(record.text() for record in consumer.poll(0.1, count - len(found)))
        return len(found) >= count

    until(enough)
    return found


def test_members_share_the_partitions_and_hand_them_over(
    broker: Broker, topic: str, group: str, members: ExitStack
) -> None:
    reported: list[tuple[str, int]] = []
    first = Consumer(
        broker,
        topic,
        group=group,
        start="earliest",
        on_assign=lambda partitions: reported.append(("assign", len(partitions))),
        on_revoke=lambda partitions: (first.commit(), reported.append(("revoke", len(partitions)))),
    )
    members.enter_context(first)
    seen = Counter(polled(first, 20))
    assert reported == [("assign", 4)]
    second = members.enter_context(Consumer(broker, topic, group=group, start="earliest"))
    until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
    assert reported == [("assign", 4), ("revoke", 2)]
    for partition in range(4):
        broker.append(topic, [LogRecord(None, b"%d:5" % partition)], partition)
    seen.update(polled(first, 2) + polled(second, 2))
    assert seen == Counter(f"{part}:{n}" for part in range(4) for n in range(6))
    first.close()
    until(lambda: len(second.assignment()) == 4)


def test_a_group_resumes_at_its_committed_offsets_and_other_groups_read_all_records(
    broker: Broker, topic: str, group: str
) -> None:
    with Consumer(broker, topic, group=group, start="earliest") as consumer:
        first = polled(consumer, 7)
        consumer.commit()
    with Consumer(broker, topic, group=group) as consumer:
        assert len(set(first + polled(consumer, 13))) == 20
    with Consumer(broker, topic, group=f"{group}-other", start="earliest", until_end=True) as consumer:
        assert len(list(consumer)) == 20


def test_where_a_group_started_is_remembered_without_a_commit(broker: Broker, topic: str, group: str) -> None:
    with Consumer(broker, topic, group=group, start="latest") as consumer:
        until(lambda: len(consumer.assignment()) == 4)
    broker.append(topic, [LogRecord(None, b"late")], 1)
    with Consumer(broker, topic, group=group) as consumer:
        assert polled(consumer, 1) == ["late"]


def test_offsets_of_an_active_group_cannot_be_set_from_outside(broker: Broker, topic: str, group: str) -> None:
    with Consumer(broker, topic, group=group, start="earliest") as consumer:
        until(lambda: len(consumer.assignment()) == 4)
        with pytest.raises(GroupHasMembers):
            broker.commit(group, topic, {0: 1})
        described = broker.describe_group(group)
        assert [len(member.topic_partitions) for member in described.members] == [4]
        assert described.committed == {topic: dict.fromkeys(range(4), 0)}
    assert group in broker.groups()
    broker.commit(group, topic, {0: 3})
    assert broker.describe_group(group).committed[topic][0] == 3
    assert broker.describe_group("nobody").members == ()


def test_a_member_that_asked_for_nothing_loses_its_partitions_and_cannot_commit(
    broker: Broker, topic: str, group: str, members: ExitStack
) -> None:
    lost: list[PartitionId] = []
    first = Consumer(
        broker, topic, group=group, start="earliest", max_pause=6, on_revoke=lambda partitions: lost.extend(partitions)
    )
    members.enter_context(first)
    polled(first, 5)
    second = members.enter_context(Consumer(broker, topic, group=group, start="earliest"))
    until(lambda: len(second.assignment()) == 4)
    polled(second, 20)
    second.commit()
    with pytest.raises(PartitionsMovedError):
        first.commit()
    assert broker.committed(group, topic) == dict.fromkeys(range(4), 5)
    until(lambda: first.poll() == [] and len(lost) == 4)


MEMBER = """
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
with Consumer(open_broker(URL), TOPIC, group=GROUP, start="earliest") as consumer:
    while True:
        for record in consumer.poll(timeout=0.1, max_records=3):
            say(record.text())
        consumer.commit()
"""


@pytest.mark.kill
def test_the_partitions_of_a_killed_member_move_and_no_record_is_lost(
    start: Callable[..., subprocess.Popen[str]],
    kafka: ServerStatus,
    broker: Broker,
    topic: str,
    group: str,
    tmp_path: Path,
) -> None:
    url = f"{kafka.url}?home={tmp_path / 'home'}"
    program = f"URL, TOPIC, GROUP = {url!r}, {topic!r}, {group!r}\n" + MEMBER
    first, second = start(program), start(program)

    def loads() -> list[int]:
        return sorted(len(member.topic_partitions) for member in broker.describe_group(group).members)

    until(lambda: loads() == [2, 2], 60)
    first.send_signal(signal.SIGKILL)
    until(lambda: loads() == [4], 60)
    until(lambda: broker.committed(group, topic) == broker.end_offsets(topic))
    outputs = []
    for process in (first, second):
        process.kill()
        outputs += process.communicate(timeout=30)[0].split()
    assert set(outputs) == {f"{part}:{n}" for part in range(4) for n in range(5)}


def test_a_queue_hands_out_acknowledges_and_sets_aside(broker: Broker, topic: str, group: str) -> None:
    with Queue(broker, topic, group, max_deliveries=2, dead_letters=f"{topic}-aside") as queue:
        for delivery in (next(iter(queue)) for _ in range(20)):
            if delivery.text() == "2:2":
                delivery.nack(delay="1 s", error="no")
            else:
                delivery.ack()
        (again,) = queue.receive(5, timeout=30)
        assert (again.text(), again.deliveries) == ("2:2", 2)
        again.nack(error="no")
        assert queue.counts() == QueueCounts()
    (letter,) = read_all(broker, f"{topic}-aside")
    assert (letter.value, dict(letter.headers)["potok.error"]) == (b"2:2", b"delivered 2 times: no")
