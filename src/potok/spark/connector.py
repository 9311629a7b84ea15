"""Read large batches from Kafka with Spark's own connector: it fetches the bytes in the JVM, Python decodes columns.

For authentication methods that only Java supports: it takes about three times the processor time of the client in the
workers, which reads records in the process that decodes them. The connector has to be set up for every batch, which
takes longer than a small batch: those are read by the client.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.log.broker import READ_SCHEMA
from potok.operators.core.batch_spec import BatchSpec, Range
from potok.runtime.batches.task import Job

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

GROUP = "kafka.group.id"
"""A fixed name: the connector caches its consumers between batches by it, and they commit nothing."""


FETCHING = {"kafka.max.poll.records": "10000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
"""Larger fetches than the defaults of a program that polls for single records."""

HEADERS_TYPE = "array<struct<name: string, value: binary>>"
"""Spark checks the size of a column batch after each row, which traverses all null lists, but not empty ones."""


ROW_TYPE = "task int, data binary"
_ROW = pa.schema([("task", pa.int32()), ("data", pa.binary())])

CHOICE = "spark.potok.reader"
"""A Spark setting that enables the connector; its jars may be present for other reasons."""


_SESSION_CONF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's default without Kafka, whose older reader creates an object for every field of every record: measured on
    # 2 cores, the JVM takes about a tenth more processor time.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}


@dataclass(frozen=True, slots=True)
class Connector:
    """The connector of one query."""

    spark: SparkSession
    options: Mapping[str, str]
    query: str

    def read(self, spec: BatchSpec) -> DataFrame:
        """Read the records of a batch, one Spark partition for each topic partition."""
        starts: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for part in _ranges(spec):
            input_partition = spec.input_partitions[part.input_partition]
            starts.setdefault(input_partition.topic, {})[str(input_partition.partition)] = part.start
            ends.setdefault(input_partition.topic, {})[str(input_partition.partition)] = part.end
        assigned = {topic: [int(part) for part in parts] for topic, parts in starts.items()}
        frame = (
            self.spark.read.format("kafka")
            .options(**FETCHING, **dict(self.options))
            .option(GROUP, f"potok-{self.query}-connector")
            .option("kafka.isolation.level", "read_committed")
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            .load()
        )
        return frame.selectExpr(
            "key",
            "value",
            "unix_millis(timestamp) AS timestamp",
            f"coalesce(CAST(headers AS {HEADERS_TYPE}), CAST(array() AS {HEADERS_TYPE})) AS headers",
            "offset",
            *(["topic"] if len(starts) > 1 else []),
            "partition",
        )


def connector_of(context: SparkContext, spec: BatchSpec) -> Connector | None:
    """Return the connector if the log is Kafka and Spark was started with it."""
    options = spec.broker.connector_options()
    if not options or context.getConf().get(CHOICE, "") != "connector":
        return None
    return Connector(_session(context), options, spec.query)


@lru_cache(maxsize=1)
def _session(_: SparkContext) -> SparkSession:
    """Return our own session, so that the settings of the surrounding program do not change."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    for name, value in _SESSION_CONF.items():
        session.conf.set(name, value)
    return session


def _ranges(spec: BatchSpec) -> list[Range]:
    return [part for task in spec.tasks for part in task]


def read_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run level 0 of a job on records read by the connector, for `mapInArrow`."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for task, data in job.decode(context.partitionId(), lambda spec: Pieces(spec).of(batches)):
        yield pa.RecordBatch.from_arrays([pa.array([task], pa.int32()), pa.array([data], pa.binary())], schema=_ROW)


class Pieces:
    """Split the connector's batches into pieces of one partition each, in the form in which logs are read."""

    def __init__(self, spec: BatchSpec) -> None:
        self._input_partitions = {
            (
                spec.input_partitions[part.input_partition].topic,
                spec.input_partitions[part.input_partition].partition,
            ): part.input_partition
            for part in _ranges(spec)
        }
        topics = {topic for topic, _ in self._input_partitions}
        self._only = topics.pop() if len(topics) == 1 else None

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield input partitions and records."""
        for batch in batches:
            if batch.num_rows:
                yield from self._cut(batch)

    def _cut(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        partitions = batch.column("partition").to_numpy()
        changes = partitions[1:] != partitions[:-1]
        topics: Any = None
        if self._only is None:
            topics = batch.column("topic").dictionary_encode()
            numbers = topics.indices.to_numpy()
            changes = changes | (numbers[1:] != numbers[:-1])
        bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
        for start, stop in itertools.pairwise(bounds):
            topic = self._only or topics[start].as_py()
            yield self._input_partitions[topic, int(partitions[start])], _as_read(batch.slice(start, stop - start))


def _as_read(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = batch.column("timestamp")
    columns = {
        "key": batch.column("key"),
        "value": batch.column("value"),
        "timestamp": times,
        "ingested": times,
        "headers": _headers(batch.column("headers")),
        "offset": batch.column("offset"),
    }
    return pa.RecordBatch.from_arrays(
        [columns[field.name].cast(field.type) for field in READ_SCHEMA], schema=READ_SCHEMA
    )


def _headers(column: pa.Array) -> pa.Array:
    """Return null for records without headers, as every log does."""
    empty = pc.equal(pc.list_value_length(column), 0)
    return pc.if_else(empty, pa.scalar(None, column.type), column) if pc.any(empty).as_py() else column
