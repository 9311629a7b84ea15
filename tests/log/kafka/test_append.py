from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from potok.log.kafka.append import Appender
from potok.log.kafka.clients import Clients
from potok.log.kafka.options import KafkaOptions


class FailedProducer:
    """A client that has failed for good, with two records whose results it still has to report."""

    def __init__(self) -> None:
        self.left = 2
        self.failed = False

    def poll(self, _: float) -> None:
        if not self.failed:
            self.failed = True
            raise KafkaException(KafkaError(KafkaError._FATAL))
        self.left -= 1

    def __len__(self) -> int:
        return self.left


def test_a_producer_that_failed_is_heard_to_the_end_and_then_left() -> None:
    appender = Appender(Clients(KafkaOptions(("nobody:1",))))
    producer: Any = FailedProducer()
    appender._producer = producer
    closing = threading.Event()
    thread = threading.Thread(target=appender._serve, args=(producer, closing), daemon=True)
    thread.start()
    thread.join(10)
    ended = not thread.is_alive()
    closing.set()
    assert ended
    assert len(producer) == 0
    assert appender._producer is None
