"""Remove records from Kafka, which can only truncate a partition at its beginning, and note who still needs which.

Kafka has no place for these notes, so they are in the metadata store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from potok.log.kafka.clients import PATIENCE_S, Clients
from potok.log.ranges import Ranges, inside
from potok.metadata.metadata_store import MetadataStore

_PROTECTED = "protected/"


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


def set_protected(store: MetadataStore, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replace the offsets from which on `owner` needs the records."""
    places = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
    store.set_metadata({_PROTECTED + owner: json.dumps(places).encode() if places else None})


def protected(store: MetadataStore) -> dict[tuple[str, int], int]:
    """The least offset of each partition that somebody needs."""
    least: dict[tuple[str, int], int] = {}
    for data in store.list_metadata(_PROTECTED).values():
        for topic, partition, offset in json.loads(data):
            least[topic, partition] = min(offset, least.get((topic, partition), offset))
    return least
