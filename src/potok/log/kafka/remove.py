"""Removing records from Kafka, which can only cut a partition off at its beginning."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from potok.log.kafka.clients import PATIENCE_S, Clients
from potok.log.ranges import Ranges, inside


def beginning(batches: Iterable[pa.RecordBatch], ranges: Ranges) -> tuple[int, int]:
    """Up to which offset there are only records of the ranges, and how many; `batches` begin where the partition does.

    Control records leave gaps between the ranges, which are in nobody's way.
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
    place = TopicPartition(topic, partition, offset)
    future = clients.admin().delete_records([place], request_timeout=PATIENCE_S)[place]
    clients.answer(future, topic)
