"""The processing log: failures of expressions, as records of a topic.

It is written in the transaction of the batch, so each failure appears once, and it is bounded: the first failures of
an expression in a batch appear one by one, the others as a count.
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

RETENTION_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class Failed:
    """One failure of an expression, or of "" if a record could not be read. A failure without a single record has no
    topic.
    """

    expression: str
    message: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


def make_log(broker: Broker) -> None:
    """Create the topic if it does not exist."""
    if not broker.has_topic(PROCESSING_LOG):
        broker.create_topic(PROCESSING_LOG, 1, retention_ms=RETENTION_MS, exist_ok=True)


def report_failures(broker: Broker, topology: Topology, spec: BatchSpec, report: Report) -> None:
    """Stage the failures of a batch."""
    if not report.failures or comes_from_log(broker, topology.source_topics):
        return
    make_log(broker)
    failed = [
        Failed(found.expression, found.message, *_position(spec, found.input_partition, found.offset))
        for found in report.failed
    ]
    batch = log_records(topology.name, report.failures, failed)
    report.staged.append(broker.stage(spec.staging, PROCESSING_LOG, 0, batch))


def _position(spec: BatchSpec, input_partition: int, offset: int) -> tuple[str | None, int | None, int | None]:
    return (
        (spec.input_partitions[input_partition].topic, spec.input_partitions[input_partition].partition, offset)
        if input_partition >= 0
        else (None, None, None)
    )


def comes_from_log(broker: Broker, topics: Iterable[str]) -> bool:
    """Whether topics hold the processing log, or results derived from it. Queries that read them do not write to it:
    each failure would cause another one, without end.
    """
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
    """Return the records of the log: the failures that are logged one by one, and the count of the others."""
    now = now_ms()
    rows = [
        {"key": query.encode(), "value": orjson.dumps({"TIME": now, **row}), "timestamp": now}
        for row in _rows(failures, failed)
    ]
    return pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)


def _rows(failures: Counter[str], failed: Iterable[Failed]) -> Iterator[dict[str, Any]]:
    logged: Counter[str] = Counter()
    for one in failed:
        logged[one.expression] += 1
        yield _row(one, 1)
    for expression, more in (failures - logged).items():
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
