"""A broker on the server of the tests, with a home of its own; the topics of a test go with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from potok.log.kafka.fences import TOPIC
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.open import open_broker

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


@pytest.fixture
def log(kafka: ServerStatus, tmp_path: Path) -> Iterator[KafkaBroker]:
    opened = open_broker(f"{kafka.url}?home={tmp_path / 'data'}")
    assert isinstance(opened, KafkaBroker)
    yield opened
    opened.close()
    again = KafkaBroker.shared(opened.options, opened.directory)
    for topic in set(again.topics()) - {TOPIC}:
        again.delete_topic(topic)
    again.close()


@pytest.fixture
def stranger(kafka: ServerStatus, request: pytest.FixtureRequest) -> Producer:
    """A producer of transactions that has nothing to do with Potok."""
    name = f"stranger-{request.node.name}"
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    return producer
