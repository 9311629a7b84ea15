"""Stage the webhooks of a batch as records that become visible with its commit."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA, Broker, Staged
from potok.runtime.webhooks.records import STEP_HEADER, deliveries_topic
from potok.sinks.sink_spec import Batch, Failures, Rows


class WebhookWriter:
    """Writes the deliveries of one step."""

    def __init__(self, broker: Broker, query: str, step: str) -> None:
        self._broker, self._query, self._step = broker, query, step
        self._topic = deliveries_topic(query)

    def stage(self, batch: Batch, rows: Rows, directory: Path | None) -> tuple[list[Staged], Failures]:
        """Return the staged deliveries, and the records that the topic would refuse."""
        values = pa.array(rows.value, pa.binary()) if isinstance(rows.value, list) else rows.value.cast(pa.binary())
        header = [{"name": STEP_HEADER, "value": self._step.encode()}]
        table = pa.RecordBatch.from_arrays(
            [
                pa.array([self._identifier(batch, row).encode() for row in range(len(rows))], pa.binary()),
                values,
                pa.array(rows.timestamp),
                pa.nulls(len(rows), pa.int64()),
                pa.array([header] * len(rows), LOG_SCHEMA.field("headers").type),
            ],
            schema=LOG_SCHEMA,
        )
        failures = dict(self._broker.unfit(self._topic, table))
        if failures:
            table = table.filter(pa.array([row not in failures for row in range(len(rows))]))
        staged = [self._broker.stage(directory, self._topic, 0, table)] if table.num_rows else []
        return staged, failures

    def _identifier(self, batch: Batch, row: int) -> str:
        """Return the id of a delivery: a repeated attempt of a batch derives the same one."""
        text = f"{self._query}\0{self._step}\0{batch.number}\0{row}"
        return f"msg_{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
