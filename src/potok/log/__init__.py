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
from potok.log.consumer import ConsumedRecord, Consumer
from potok.log.open import open_broker
from potok.log.producer import Producer

__all__ = [
    "LOG_SCHEMA",
    "READ_SCHEMA",
    "AppendResult",
    "Broker",
    "ConsumedRecord",
    "Consumer",
    "PartitionDescription",
    "Producer",
    "Staged",
    "TopicConfig",
    "TopicDescription",
    "open_broker",
]
