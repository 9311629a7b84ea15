"""Send commands, and find their results: for the server and the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from potok.log.broker import Broker, position_of
from potok.log.partitioner import partition_of
from potok.patterns.aggregates.messages import COMMAND_ID, REPEATED, Result, commands_topic, read_result, results_topic
from potok.records.log_record import LogRecord
from potok.records.position import Position

LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class Sent:
    """A command that was appended. Its result will be in a partition of the results, at an offset or after it."""

    aggregate: str
    aggregate_id: str
    command_id: str
    partition: int
    offset: int
    position: Position = field(default_factory=Position)


@dataclass(frozen=True, slots=True)
class Found:
    """A result, and the position after its record. `repeated`: the command id was used before."""

    result: Result
    position: Position
    repeated: bool = False


def append_command(broker: Broker, aggregate: str, command_id: str, record: LogRecord) -> Sent:
    """Append the record of a command; durable when this returns."""
    topic, results = commands_topic(aggregate), results_topic(aggregate)
    key = record.key or b""
    partition = partition_of(key, broker.partitions(results))
    # Read before the command is appended, so that its result cannot be before it.
    offset = broker.end_offsets(results)[partition]
    position = position_of(topic, broker.append(topic, [record]))
    return Sent(aggregate, key.decode(), command_id, partition, offset, position)


def results_in(topic: str, partition: int, batch: pa.RecordBatch, wanted: set[bytes]) -> Iterator[tuple[bytes, Found]]:
    """Yield the results for these aggregate ids in a batch of records, with the id."""
    keys = batch.column("key").to_pylist()
    for row, key in enumerate(keys):
        if key not in wanted:
            continue
        value = batch.column("value")[row].as_py()
        headers = {pair["name"]: pair["value"] for pair in batch.column("headers")[row].as_py() or ()}
        if value is None or COMMAND_ID not in headers:
            continue
        try:
            result = read_result(value)
        except (TypeError, ValueError):
            continue  # somebody else wrote into the topic
        end = batch.column("offset")[row].as_py() + 1
        yield key, Found(result, Position.after([(topic, partition, end)]), REPEATED in headers)


def find_result(broker: Broker, sent: Sent) -> Found | None:
    """Return the result of a command; None if there is none yet."""
    topic = results_topic(sent.aggregate)
    start = max(sent.offset, broker.earliest_offsets(topic)[sent.partition])
    end = broker.end_offsets(topic)[sent.partition]
    wanted = {sent.aggregate_id.encode()}
    for batch in broker.read(topic, sent.partition, start, end) if start < end else ():
        for _, found in results_in(topic, sent.partition, batch, wanted):
            if found.result.command_id == sent.command_id:
                return found
    return None


def wait_for_result(broker: Broker, sent: Sent, timeout_s: float) -> Found | None:
    """Return the result of a command; None after the timeout: the command is decided nevertheless."""
    deadline = time.monotonic() + timeout_s
    while (found := find_result(broker, sent)) is None and time.monotonic() < deadline:
        time.sleep(max(LOOK_S, broker.poll_interval_s))
    return found
