"""The log: topics of records, in a directory or on a broker."""

from potok.log.broker import (
    LOG_SCHEMA,
    READ_SCHEMA,
    AppendResult,
    Broker,
    PartitionDescription,
    Staged,
    TopicConfig,
    TopicDescription,
)
from potok.log.clients.consumed_record import ConsumedRecord
from potok.log.clients.consumer import Consumer
from potok.log.clients.producer import Producer
from potok.log.open import open_broker
from potok.log.queues.delivery import Delivery
from potok.log.queues.queue import Queue

__all__ = [
    "LOG_SCHEMA",
    "READ_SCHEMA",
    "AppendResult",
    "Broker",
    "ConsumedRecord",
    "Consumer",
    "Delivery",
    "PartitionDescription",
    "Producer",
    "Queue",
    "Staged",
    "TopicConfig",
    "TopicDescription",
    "open_broker",
]


def __dir__() -> list[str]:
    return sorted(__all__)
