"""The topics of a capture: created, scanned for live keys, and notified of changed columns."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from potok.clock import now_ms
from potok.log.broker import HEADERS, Broker
from potok.sources.cdc.envelopes.envelope import RECORDS, tombstones
from potok.sources.cdc.envelopes.shape import Shape, differences
from potok.sources.cdc.landing.landing import Output
from potok.topology.capture import Capture
from potok.version import __version__


class Topics:
    """The topics of the tables, and that of the changed columns, which has the name of the capture."""

    def __init__(self, broker: Broker, capture: Capture, connector: str) -> None:
        self._broker, self._capture, self._connector = broker, capture, connector

    def create(self) -> None:
        for table in self._capture.tables:
            self._broker.create_topic(self._capture.topic(table), self._capture.partitions, exist_ok=True)
        self._broker.create_topic(self._capture.name, 1, exist_ok=True)

    def exists(self, table: str) -> bool:
        return self._broker.has_topic(self._capture.topic(table))

    def deletions(self, table: str) -> list[Output]:
        """Return a record for each row that the topic has left, so that tables which read it become empty."""
        topic = self._capture.topic(table)
        starts, ends = self._broker.earliest_offsets(topic), self._broker.end_offsets(topic)
        found = []
        for partition, end in ends.items():
            live = self._live_keys(topic, partition, starts[partition], end)
            if live:
                found.append(Output(topic, tombstones(pa.array(live, pa.binary()), now_ms()), partition))
        return found

    def _live_keys(self, topic: str, partition: int, start: int, end: int) -> list[bytes]:
        live: dict[bytes, bool] = {}
        for batch in self._broker.read(topic, partition, start, end):
            keys, present = batch.column("key").to_pylist(), batch.column("value").is_valid().to_pylist()
            live.update(zip(keys, present, strict=True))
        return [key for key, is_live in live.items() if is_live and key is not None]

    def columns_changed(self, shape: Shape, before: list[list[Any]] | None, statement: str | None = None) -> Output:
        """Return the record that says how a table looks from here on, in the form of Debezium's schema changes."""
        now = now_ms()
        columns = [
            {"name": column.name, "typeName": column.type, "position": number, "optional": not column.key}
            for number, column in enumerate(shape.columns, 1)
        ]
        source = {
            "version": __version__,
            "connector": self._connector,
            "name": self._capture.name,
            "ts_ms": now,
            "schema": shape.schema,
            "table": shape.table,
        }
        value = {
            "source": source,
            "ts_ms": now,
            **self._names(shape),
            "ddl": statement,
            "changes": [] if before is None else differences(before, shape.described()),
            "tableChanges": [
                {
                    "type": "CREATE" if before is None else "ALTER",
                    "id": f'"{shape.schema}"."{shape.table}"',
                    "table": {
                        "primaryKeyColumnNames": [column.name for column in shape.key_columns],
                        "columns": columns,
                    },
                }
            ],
        }
        return Output(self._capture.name, _record(shape.name.encode(), orjson.dumps(value), now), 0)

    def _names(self, shape: Shape) -> dict[str, str | None]:
        if self._capture.kind == "mysql":
            return {"databaseName": shape.schema, "schemaName": None}
        return {"schemaName": shape.schema}


def _record(key: bytes, value: bytes, at_ms: int) -> pa.RecordBatch:
    columns = [pa.array([key]), pa.array([value]), pa.array([at_ms], pa.int64()), pa.nulls(1, HEADERS)]
    return pa.record_batch(columns, schema=RECORDS)
