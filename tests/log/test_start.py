from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from potok.log.clients.consumer import Consumer
from potok.log.clients.producer import Producer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.queues.queue import Queue
from potok.log.start import NotAStart, Start

STARTS: list[tuple[Start, list[int]]] = [
    ("earliest", [0, 1, 2, 3]),
    ("latest", []),
    (datetime.fromtimestamp(2, UTC), [2, 3]),
    ({"t": {0: 3}}, [3]),
    ({}, [0, 1, 2, 3]),
]


@pytest.fixture
def log(broker: EmbeddedBroker) -> EmbeddedBroker:
    with Producer(broker) as producer:
        for n in range(4):
            producer.send("t", n, timestamp=n * 1000)
    return broker


@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_consumers_and_queues_start_at_the_same_record(log: EmbeddedBroker, start: Start, expected: list[int]) -> None:
    with Consumer(log, "t", start=start) as consumer:
        assert [record.json() for record in consumer.poll()] == expected
    with Consumer(log, "t", group="g", start=start) as consumer:
        assert [record.json() for record in consumer.poll()] == expected
    with Queue(log, "t", "q", start=start) as queue:
        assert sorted(delivery.json() for delivery in queue.receive()) == expected


def test_all_readers_start_at_the_first_record_by_default(log: EmbeddedBroker) -> None:
    with Consumer(log, "t") as consumer, Queue(log, "t", "q") as queue:
        assert len(consumer.poll()) == len(queue.receive()) == 4


def test_anything_else_is_not_a_start(log: EmbeddedBroker) -> None:
    wrong: Any = "soon"
    with pytest.raises(NotAStart):
        Consumer(log, "t", start=wrong)
