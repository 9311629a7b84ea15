"""Topologies on real Kafka: read by Spark's connector or by the client, written in transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import potok
from potok import StreamsBuilder
from potok.log.clients.consumer import Consumer
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.batches import batch
from potok.runtime.planning.start_offsets import TopicReplaced

if TYPE_CHECKING:
    from potok.log.broker import Broker
    from potok.log.kafka.development.server import ServerStatus

pytestmark = pytest.mark.timeout(300)

READERS = {"connector": 0, "client": 1 << 40}
"""Batches over so many records are read by the connector."""


@pytest.fixture(params=sorted(READERS))
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(batch, "SMALL_BATCH", READERS[request.param])
    return request.param


@pytest.fixture
def broker(kafka: ServerStatus, tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'home'}")
    yield opened
    opened.close()


def counting(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream(f"{name}-orders")
    orders.group_by(lambda v: v["user"]).count(name="counts").to_stream().to(f"{name}-counts")
    return builder


def latest(broker: Broker, topic: str) -> dict[str, int]:
    with Consumer(broker, topic, start="earliest", until_end=True) as consumer:
        return {record.key_text() or "": record.json() for record in consumer}


@pytest.mark.usefixtures("spark", "reader")
def test_a_topology_counts_what_kafka_holds(broker: Broker, request: pytest.FixtureRequest) -> None:
    name = f"counting-{request.node.callspec.id}"
    broker.create_topic(f"{name}-orders", 3)
    with potok.Producer(broker) as producer:
        for number in range(1_000):
            producer.send(f"{name}-orders", {"user": f"u{number % 7}"}, key=str(number))
    potok.run(counting(name), broker=broker.url, until_end=True)
    expected = {f"u{n}": len(range(n, 1_000, 7)) for n in range(7)}
    assert dict(potok.open_tables(broker.url, name)["counts"].all()) == expected
    assert latest(broker, f"{name}-counts") == expected

    with potok.Producer(broker) as producer:
        producer.send(f"{name}-orders", {"user": "u0"}, key="more")
    potok.run(counting(name), broker=broker.url, until_end=True)
    assert latest(broker, f"{name}-counts")["u0"] == expected["u0"] + 1
    # The progress of the group of its name is committed in the background.
    wait_for(lambda: sum(broker.committed(name, f"{name}-orders").values()) == 1_001)


@pytest.mark.usefixtures("spark")
def test_partitions_that_are_added_while_a_query_runs_are_read(broker: Broker, kafka: ServerStatus) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    name = "growing"
    broker.create_topic(f"{name}-orders", 1)
    broker.append(f"{name}-orders", [LogRecord(b"k", b'{"user": "a"}', 1)])
    with potok.start(counting(name), broker=broker.url) as query:
        wait_for(lambda: query.offsets.topics.get(f"{name}-orders") == {0: 1})
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_partitions([NewPartitions(f"{name}-orders", 2)])[f"{name}-orders"].result()
        wait_for(lambda: broker.partitions(f"{name}-orders") == 2)
        broker.append(f"{name}-orders", [LogRecord(b"k", b'{"user": "b"}', 1)], partition=1)
        wait_for(lambda: query.offsets.topics.get(f"{name}-orders") == {0: 1, 1: 1})
        assert dict(query.table("counts").all()) == {"a": 1, "b": 1}


@pytest.mark.usefixtures("spark")
def test_a_topic_that_is_deleted_and_created_again_stops_the_query(broker: Broker) -> None:
    name = "replaced"
    broker.create_topic(f"{name}-orders", 1)
    broker.append(f"{name}-orders", [LogRecord(b"k", b'{"user": "a"}', 1)] * 3)
    potok.run(counting(name), broker=broker.url, until_end=True)
    broker.delete_topic(f"{name}-orders")
    broker.create_topic(f"{name}-orders", 1)
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        potok.run(counting(name), broker=broker.url, until_end=True)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
