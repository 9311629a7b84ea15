"""The processing log: what could not be computed of records, as records of a topic of its own.

It is written in the transaction of the batch, so that each failure stands there once, and it is bounded: the first
failures of an expression in a batch stand there one by one, the others as a number.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa

from potok.engine.batch_spec import BatchSpec
from potok.engine.report import Report
from potok.log.broker import LOG_SCHEMA, Broker
from potok.topology.graph import Topology

PROCESSING_LOG = "ksql_processing_log"
"""The topic; one for all queries of a log."""

KEPT_MS = 7 * 86_400_000


def make_log(broker: Broker) -> None:
    """Make the topic, if it is not there."""
    if not broker.has_topic(PROCESSING_LOG):
        broker.create_topic(PROCESSING_LOG, 1, retention_ms=KEPT_MS, exist_ok=True)


def tell_failures(broker: Broker, topology: Topology, spec: BatchSpec, report: Report) -> None:
    """Stage what failed in a batch. A query that reads the log tells nothing there: it would never come to an end."""
    if not report.failures or PROCESSING_LOG in topology.source_topics:
        return
    make_log(broker)
    now_ms = int(time.time() * 1000)
    rows = [
        {"key": topology.name.encode(), "value": orjson.dumps({"TIME": now_ms, **row}), "timestamp": now_ms}
        for row in _rows(spec, report)
    ]
    batch = pa.RecordBatch.from_pylist(rows, LOG_SCHEMA)
    report.staged.append(broker.stage(spec.staging, PROCESSING_LOG, 0, batch))


def _rows(spec: BatchSpec, report: Report) -> Iterator[dict[str, Any]]:
    told: Counter[str] = Counter()
    for failure in report.failed:
        told[failure.expression] += 1
        lane = spec.lanes[failure.lane] if failure.lane >= 0 else None
        yield {
            "EXPRESSION": failure.expression,
            "MESSAGE": failure.message,
            "SOURCE_TOPIC": lane.topic if lane else None,
            "SOURCE_PARTITION": lane.partition if lane else None,
            "SOURCE_OFFSET": failure.offset if lane else None,
            "FAILURES": 1,
        }
    for expression, more in (report.failures - told).items():
        yield {
            "EXPRESSION": expression,
            "MESSAGE": f"and {more} more in the same batch",
            "SOURCE_TOPIC": None,
            "SOURCE_PARTITION": None,
            "SOURCE_OFFSET": None,
            "FAILURES": more,
        }
