"""The processing log: what could not be computed of records, as records of a topic of its own.

It is written in the transaction of the batch, so that each failure stands there once, and it is bounded: the first
failures of an expression in a batch stand there one by one, the others as a number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from potok.clock import now_ms
from potok.log.broker import LOG_SCHEMA, Broker
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.task_report import Report
from potok.topology.graph import Topology

PROCESSING_LOG = "ksql_processing_log"
"""The topic; one for all queries of a log."""

KEPT_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class Failed:
    """One failure: of an expression, or "" where a record could not even be read. What no single record stands for has
    no topic."""

    expression: str
    message: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


def make_log(broker: Broker) -> None:
    """Make the topic, if it is not there."""
    if not broker.has_topic(PROCESSING_LOG):
        broker.create_topic(PROCESSING_LOG, 1, retention_ms=KEPT_MS, exist_ok=True)


def report_failures(broker: Broker, topology: Topology, spec: BatchSpec, report: Report) -> None:
    """Stage what failed in a batch."""
    if not report.failures or comes_from_log(broker, topology.source_topics):
        return
    make_log(broker)
    failed = [
        Failed(found.expression, found.message, *_place(spec, found.input_partition, found.offset))
        for found in report.failed
    ]
    batch = log_records(topology.name, report.failures, failed)
    report.staged.append(broker.stage(spec.staging, PROCESSING_LOG, 0, batch))


def _place(spec: BatchSpec, input_partition: int, offset: int) -> tuple[str | None, int | None, int | None]:
    return (
        (spec.input_partitions[input_partition].topic, spec.input_partitions[input_partition].partition, offset)
        if input_partition >= 0
        else (None, None, None)
    )


def comes_from_log(broker: Broker, topics: Iterable[str]) -> bool:
    """Whether topics hold the log, or what some query has made of it. Who reads them tells nothing there: each failure
    would bring the next one, and so on for ever."""
    if not broker.has_topic(PROCESSING_LOG):
        return False
    metadata_keys = broker.list_metadata("query/")
    queries = [json.loads(data) for name, data in metadata_keys.items() if name.endswith("/description")]
    made, before = {PROCESSING_LOG}, 0
    while len(made) > before:
        before = len(made)
        made.update(*(query["writes"] for query in queries if not made.isdisjoint(query["reads"])))
    return not made.isdisjoint(topics)


def log_records(query: str, failures: Counter[str], failed: Iterable[Failed]) -> pa.RecordBatch:
    """The records of the log that tell how often each expression failed, and of those that are told one by one."""
    now = now_ms()
    rows = [
        {"key": query.encode(), "value": orjson.dumps({"TIME": now, **row}), "timestamp": now}
        for row in _rows(failures, failed)
    ]
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)


def _rows(failures: Counter[str], failed: Iterable[Failed]) -> Iterator[dict[str, Any]]:
    told: Counter[str] = Counter()
    for one in failed:
        told[one.expression] += 1
        yield _row(one, 1)
    for expression, more in (failures - told).items():
        yield _row(Failed(expression, f"and {more} more in the same batch"), more)


def _row(failed: Failed, failures: int) -> dict[str, Any]:
    return {
        "EXPRESSION": failed.expression or None,
        "MESSAGE": failed.message,
        "SOURCE_TOPIC": failed.topic,
        "SOURCE_PARTITION": failed.partition,
        "SOURCE_OFFSET": failed.offset,
        "FAILURES": failures,
    }
