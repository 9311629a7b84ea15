"""Records for sinks, and what a sink gets when it is opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from potok.records.schemas.declared_schema import declared_schema
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Failures, Opening, PartTarget, PartWriter, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.spark_access import SparkAccess


def typed(declared: str | None) -> pa.DataType | None:
    schema = declared_schema(declared)
    return None if schema is None else schema.arrow


def rows_of(records: list[tuple[Any, Any]], types: Types, first_ms: int = 0) -> Rows:
    keys: Any = [key for key, _ in records]
    values: Any = [value for _, value in records]
    times = np.arange(first_ms, first_ms + len(records), dtype=np.int64)
    return Rows(
        keys if types.key is None else pa.array(keys, types.key),
        values if types.value is None else pa.array(values, types.value),
        times,
    )


def opening(
    types: Types,
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
    *,
    query: str = "q",
    epoch: int = 1,
    committed: int = 0,
    spark: SparkAccess | None = None,
) -> Opening:
    return Opening(query, "orders.sink", guarantee, types, epoch, committed, spark)


def prepared(target: SinkSpec, rows: Rows, types: Types) -> tuple[Rows, Failures]:
    """What an outlet gets: without the records that the target cannot take."""
    found = target.prepare(rows, types)
    kept = [row for row in range(len(rows)) if row not in found.failures]

    def pick(column: Any) -> Any:
        return [column[row] for row in kept] if isinstance(column, list) else column.take(pa.array(kept, pa.int64()))

    return Rows(pick(found.key), pick(found.value), rows.timestamp[kept]), found.failures


def deliver(target: SinkSpec, sink_writer: SinkWriter | PartWriter, rows: Rows, types: Types, batch: Batch) -> Failures:
    """One batch, of one task."""
    ready, refused = prepared(target, rows, types)
    if isinstance(sink_writer, PartWriter):
        assert isinstance(target, PartTarget)
        sink_writer.accept(batch, [target.write(ready, "q", "orders.sink")])
        return refused
    return {**refused, **sink_writer.deliver(batch, ready)}
