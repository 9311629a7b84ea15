"""Remove records from Kafka, which can only truncate a partition at its start."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from potok.log.kafka.clients import PATIENCE_S, Clients
from potok.log.ranges import Ranges, inside


def beginning(batches: Iterable[pa.RecordBatch], ranges: Ranges) -> tuple[int, int]:
    """Return the offset up to which there are only records of the ranges, and their number.

    `batches` start with the partition. Gaps between the ranges, left by control records, do not matter.
    """
    count = 0
    for batch in batches:
        offsets = batch.column("offset").to_numpy()
        others = np.flatnonzero(~inside(ranges, offsets))
        if len(others):
            return int(offsets[others[0]]), count + int(others[0])
        count += len(offsets)
    return ranges[-1][1], count


def delete_before(clients: Clients, topic: str, partition: int, offset: int) -> None:
    topic_partition = TopicPartition(topic, partition, offset)
    future = clients.admin().delete_records([topic_partition], request_timeout=PATIENCE_S)[topic_partition]
    clients.answer(future, topic)
