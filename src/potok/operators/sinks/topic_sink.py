"""Write to topics: records are encoded, assigned to partitions, and staged until the batch commits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.log.broker import LOG_SCHEMA, Broker
from potok.log.partitioner import partitions_of
from potok.operators.core.chunk import Chunk, Column, Ints
from potok.operators.core.dead_letters import Reason
from potok.operators.core.event_time import event_times
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.record_order import by_position, sorted_rows
from potok.operators.core.task_report import Report
from potok.operators.sinks.event_encoder import Encoder
from potok.operators.tables.changes import present
from potok.records.formats.default import default_format
from potok.records.formats.format import Encoded
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.sinks.guarantee import Guarantee


class SinkWriter(Operator):
    """Stage the records of one task for one sink."""

    def __init__(
        self,
        name: str,
        task: Task,
        topic: str,
        partitions: int,
        formats: tuple[str, str],
        source_format: str,
        broker: Broker,
        staging: Path | None,
        report: Report,
        guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
        stamp: tuple[Function, Expr | None] | None = None,
        events: Encoder | None = None,
        by_task: bool = True,
    ) -> None:
        super().__init__(name, task)
        self._topic, self._partitions, self._broker = topic, partitions, broker
        self._key_format, self._value_format = formats
        self._source_format = source_format
        self._staging, self._report, self._guarantee = staging, report, guarantee
        self._stamp, self._events = stamp, events
        self._by_task = by_task and broker.publishes_by_task and guarantee is Guarantee.EXACTLY_ONCE
        self._rows: list[pa.RecordBatch] = []
        self._homes: list[npt.NDArray[np.int64]] = []
        self._orders: list[tuple[Ints | None, Ints, Ints]] = []

    def process(self, chunk: Chunk) -> None:
        if self._stamp is not None:
            chunk = self._stamped(chunk, *self._stamp)
        keys = encode_keys(chunk.key, self._key_format)
        if self._events is not None:
            values, headers = self._events.encode(chunk, keys.values)
            written = replace(chunk, headers=headers)
        else:
            values, written = self._values(chunk), chunk
        errors = {**keys.errors, **values.errors}
        batch = pa.RecordBatch.from_arrays(
            [
                keys.values,
                values.values,
                pa.array(chunk.timestamp),
                pa.nulls(len(chunk), pa.int64()),
                pa.nulls(len(chunk), LOG_SCHEMA.field("headers").type) if written.headers is None else written.headers,
            ],
            schema=LOG_SCHEMA,
        )
        refused = {row: why for row, why in self._broker.unfit(self._topic, batch).items() if row not in errors}
        homes = self._home(keys.values, chunk)
        if errors or refused:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ENCODE)
            self.task.dead_letters.add(chunk, refused, self.name, Reason.REFUSED)
            good = all_but({**errors, **refused}, len(chunk))
            batch, homes, chunk = batch.filter(pa.array(good)), homes[good], chunk.where(good)
        self._rows.append(batch)
        self._homes.append(homes)
        self._orders.append((chunk.order, chunk.input_partition, chunk.offset))
        self.task.records_out[self.name] += batch.num_rows

    def _stamped(self, chunk: Chunk, function: Function, expr: Expr | None) -> Chunk:
        """Return records with the timestamp read from them; a tombstone has none, and keeps its own."""
        there = np.flatnonzero(present(chunk.value))
        times, errors = event_times(chunk.take(there), function, expr)
        stamps = chunk.timestamp.copy()
        stamps[there] = times
        failed = {int(there[row]): reason for row, reason in errors.items()}
        self.set_aside(chunk, failed, Reason.TIMESTAMP)
        return replace(chunk, timestamp=stamps).where(all_but(failed, len(chunk)))

    def _values(self, chunk: Chunk) -> Encoded:
        """Encode values; unchanged ones are written as the bytes that were read."""
        if chunk.intact and chunk.raw_value is not None and self._value_format in ("", self._source_format):
            return Encoded(chunk.raw_value, {})
        return encode(chunk.value, self._value_format)

    def _home(self, keys: pa.Array, chunk: Chunk) -> npt.NDArray[np.int64]:
        """Return the partition of the key as Kafka computes it; records without a key are distributed by their
        position."""
        homes = np.asarray(partitions_of(keys.fill_null(b""), self._partitions), np.int64)
        if keys.null_count:
            spread = (chunk.offset + np.maximum(chunk.input_partition, 0)) % self._partitions
            homes = np.where(keys.is_null().to_numpy(zero_copy_only=False), spread, homes)
        return homes

    def finish(self) -> None:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows).combine_chunks()
        homes = np.concatenate(self._homes)
        order_keys = _Order.of(self._orders)
        order = order_keys.order()
        if np.any(order[1:] < order[:-1]):
            # Records of several branches: within a partition they follow the order of their source records.
            table, homes = table.take(pa.array(order)), homes[order]
        self._report.written += len(homes)
        for partition in np.unique(homes):
            rows = np.flatnonzero(homes == partition)
            part = table if len(rows) == len(homes) else table.take(pa.array(rows))
            begin = 0
            for batch in part.combine_chunks().to_batches(max_chunksize=65_536):
                staged = self._broker.stage(self._staging, self._topic, int(partition), batch)
                staged = replace(staged, by_task=True) if self._by_task else staged
                self._report.stage(self._guarantee, [staged], order_keys.at(int(order[rows[begin]])))
                begin += batch.num_rows
        self._rows, self._homes, self._orders = [], [], []


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of records: by their order keys, or else by their positions."""

    order_keys: Ints | None
    input_partitions: Ints
    offsets: Ints

    @classmethod
    def of(cls, parts: list[tuple[Ints | None, Ints, Ints]]) -> _Order:
        input_partitions, offsets = (np.concatenate([part[index] for part in parts]) for index in (1, 2))
        if all(order is None for order, _, _ in parts):
            return cls(None, input_partitions, offsets)
        known = [
            by_position(input_partition, offset) if order is None else order for order, input_partition, offset in parts
        ]
        return cls(np.concatenate(known), input_partitions, offsets)

    def order(self) -> npt.NDArray[np.intp]:
        return sorted_rows(self.order_keys, self.input_partitions, self.offsets)

    def at(self, row: int) -> tuple[int, ...]:
        rows = slice(row, row + 1)
        order_keys = (
            by_position(self.input_partitions[rows], self.offsets[rows])
            if self.order_keys is None
            else self.order_keys[rows]
        )
        return tuple(order_keys[0].tolist())


def encode(column: Column, format_name: str) -> Encoded:
    """A column as bytes; without a format as JSON, traced or not, and bytes as they are."""
    if isinstance(column, list):
        return format_named(format_name or "json").encode(column, None)
    schema = declared_schema(column.type)
    chosen = format_name or ("raw" if pa.types.is_binary(column.type) else "json")
    return format_named(chosen).encode(column, schema)


def encode_keys(column: Column, format_name: str) -> Encoded:
    """Keys as bytes; of dynamic ones, text stays text and bytes stay bytes, each by itself."""
    if not isinstance(column, list) or format_name:
        return encode(column, format_name or ("" if isinstance(column, list) else default_format(column.type)))
    encoded = format_named("json").encode([None if type(key) in (str, bytes) else key for key in column], None)
    if not any(type(key) in (str, bytes) for key in column):
        return encoded
    rest = encoded.values.to_pylist()
    texts = [key.encode("utf-8", "surrogatepass") if type(key) is str else key for key in column]
    mixed = [text if type(text) is bytes else other for text, other in zip(texts, rest, strict=True)]
    return Encoded(pa.array(mixed, pa.binary()), encoded.errors)
