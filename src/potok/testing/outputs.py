"""The output of a topology, decoded for assertions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from potok.dead_letters.read import DeadLetter, read_dead_letters
from potok.log.broker import Broker
from potok.records.log_record import Headers, LogRecord

__all__ = ["DeadLetter", "OutputRecord", "read_dead_letters", "read_outputs", "records_of"]


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """A record of an output topic: the key as text and the value as JSON if they can be decoded."""

    key: Any
    value: Any
    timestamp_ms: int
    partition: int
    offset: int
    headers: Headers
    raw_key: bytes | None
    raw_value: bytes | None


def records_of(broker: Broker, topic: str) -> list[LogRecord]:
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic)
    found: list[LogRecord] = []
    for partition in sorted(ends):
        for batch in broker.read(topic, partition, starts[partition], ends[partition]):
            for row in batch.to_pylist():
                headers = tuple((header["name"], header["value"]) for header in row["headers"] or [])
                found.append(
                    LogRecord(
                        row["key"],
                        row["value"],
                        row["timestamp"],
                        headers,
                        topic,
                        partition,
                        row["offset"],
                        row["ingested"],
                    )
                )
    return found


def read_outputs(broker: Broker, topic: str) -> list[OutputRecord]:
    return [
        OutputRecord(
            _text(record.key),
            _json(record.value),
            record.timestamp_ms,
            record.partition,
            record.offset,
            record.headers,
            record.key,
            record.value,
        )
        for record in records_of(broker, topic)
    ]


def _text(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    if text[:1] in "{[" and text:
        return _json(data)
    return text


def _json(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data
