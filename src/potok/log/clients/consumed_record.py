"""A record as returned to a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa

from potok.log.consumer_groups import PartitionId
from potok.records.log_record import LogRecord


class ConsumedRecord(LogRecord):
    """A record with its position; the bytes are decoded only when asked for."""

    __slots__ = ()

    def json(self) -> Any:
        return None if self.value is None else orjson.loads(self.value)

    def text(self) -> str | None:
        return None if self.value is None else self.value.decode()

    def key_text(self) -> str | None:
        return None if self.key is None else self.key.decode()


def records_of(batch: pa.RecordBatch, topic_partition: PartitionId) -> Iterator[ConsumedRecord]:
    """Yield the rows of a batch of READ_SCHEMA, read from a topic partition."""
    keys, values, times, ingested, headers, offsets = (column.to_pylist() for column in batch.columns)
    for row in range(len(batch)):
        listed = tuple((item["name"], item["value"]) for item in headers[row] or ())
        yield ConsumedRecord(
            keys[row],
            values[row],
            times[row],
            listed,
            topic_partition[0],
            topic_partition[1],
            offsets[row],
            ingested[row],
        )
