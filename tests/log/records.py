"""Records in and out of a broker, as plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from potok.log.broker import Broker
from potok.records.log_record import LogRecord


def batch_of(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None, at: int = 1) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array(keys if keys is not None else [None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([at] * len(values), pa.int64()),
        }
    )


def read_all(broker: Broker, topic: str, partition: int = 0) -> list[LogRecord]:
    start = broker.start_offsets(topic)[partition]
    return read_range(broker, topic, partition, start, broker.end_offsets(topic)[partition])


def read_range(broker: Broker, topic: str, partition: int, start: int, end: int) -> list[LogRecord]:
    return [
        LogRecord(
            row["key"],
            row["value"],
            row["timestamp"],
            tuple((header["name"], header["value"]) for header in row["headers"] or ()),
            topic,
            partition,
            row["offset"],
            row["ingested"],
        )
        for batch in broker.read(topic, partition, start, end)
        for row in batch.to_pylist()
    ]


def values(broker: Broker, topic: str, partition: int = 0) -> list[bytes | None]:
    start = broker.start_offsets(topic)[partition]
    batches = broker.read(topic, partition, start, broker.end_offsets(topic)[partition])
    return [value for batch in batches for value in batch.column("value").to_pylist()]
