"""Write changes as records: Debezium's envelope, key, tombstones and headers, a whole block at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.clock import now_ms
from potok.log.broker import HEADERS
from potok.sources.cdc.envelopes.changes import (
    CREATE,
    DELETE,
    READ,
    TRUNCATE,
    UNAVAILABLE,
    UPDATE,
    Change,
    ChangeBlock,
    Row,
)
from potok.sources.cdc.envelopes.connect_schema import envelope_schema, key_schema
from potok.sources.cdc.envelopes.json_columns import NULL, joined, objects, where
from potok.sources.cdc.envelopes.shape import Column, Shape
from potok.sources.cdc.envelopes.source import Source, numbers
from potok.topology.nodes.sources import TRUNCATED

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"

RECORDS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", HEADERS)])


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Writes blocks of changes as records.

    Args:
        source: The origin of the changes.
        with_schema: Whether each record carries its schema, as with Kafka Connect's `schemas.enable`.
        tombstones: Whether a delete is followed by a record without a value, which compaction needs.
    """

    source: Source
    with_schema: bool = False
    tombstones: bool = True
    clock: Callable[[], int] = now_ms

    def records(self, block: ChangeBlock) -> pa.RecordBatch:
        return _Encoder(self, block).encode()


@dataclass(slots=True)
class _Rows:
    """Rows that are written together, and where they belong."""

    rows: list[Row] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def add(self, target: int, row: Row) -> None:
        self.rows.append(row)
        self.targets.append(target)


class _Encoder:
    """Lays out the records of one block, then writes them column by column."""

    def __init__(self, envelopes: Envelopes, block: ChangeBlock) -> None:
        self._envelopes, self._shape = envelopes, block.shape
        self._whole_key = bool(block.shape.key_indexes)
        self._ops: list[str] = []
        self._origins: list[Change] = []
        self._keys: list[Row | None] = []
        self._after, self._before, self._key_before = _Rows(), _Rows(), _Rows()
        self._tombstones: list[int] = []
        self._truncated = False
        self._headers: dict[int, tuple[str, Row]] = {}
        for change in block.changes:
            self._lay_out(change)

    def encode(self) -> pa.RecordBatch:
        count = len(self._ops)
        shape = self._shape
        after = _spread(_json(shape.columns, self._after.rows), self._after.targets, count)
        whole = _spread(_json(shape.columns, self._before.rows), self._before.targets, count)
        partial = _spread(_json(shape.key_columns, self._key_before.rows), self._key_before.targets, count)
        before = pc.coalesce(whole, partial) if self._before.targets or self._key_before.targets else whole
        keys = self._key_texts()
        values = self._values(pc.fill_null(before, NULL), pc.fill_null(after, NULL))
        if self._tombstones:
            gone = np.zeros(count, np.bool_)
            gone[self._tombstones] = True
            values = pc.if_else(pa.array(gone), pa.scalar(None, pa.string()), values)
        times = pa.array([change.commit_ms for change in self._origins], pa.int64())
        columns = [keys.cast(pa.binary()), values.cast(pa.binary()), times, self._header_column(count)]
        return pa.record_batch(columns, schema=RECORDS)

    def _lay_out(self, change: Change) -> None:
        op, after, before = change.op, change.after, change.before
        if op == TRUNCATE:
            self._truncated = True
            self._add(TRUNCATE, change, None)
            return
        if op == DELETE:
            assert before is not None
            self._delete(change, before)
            return
        assert after is not None
        key = self._shape.key_of(after)
        if before is not None and UNAVAILABLE in after and not change.before_is_key:
            after = tuple([old if new is UNAVAILABLE else new for new, old in zip(after, before, strict=True)])
        if op == UPDATE and before is not None and self._whole_key:
            old_key = self._shape.key_of(before)
            if old_key != key:
                self._move(change, before, old_key, after, key)
                return
        row = self._add(op, change, key)
        self._after.add(row, after)
        if before is not None:
            self._note_before(row, change, before)

    def _move(self, change: Change, before: Row, old_key: Row, after: Row, key: Row) -> None:
        """Write a change of the key: the row is deleted under the old one and created under the new one."""
        row = self._delete(change, before)
        self._headers[row] = (NEW_KEY, key)
        row = self._add(CREATE, change, key)
        self._headers[row] = (OLD_KEY, old_key)
        self._after.add(row, after)

    def _delete(self, change: Change, before: Row) -> int:
        key = self._shape.key_of(before)
        row = self._add(DELETE, change, key)
        self._note_before(row, change, before)
        if self._envelopes.tombstones and self._whole_key:
            self._tombstones.append(self._add(DELETE, change, key))
        return row

    def _note_before(self, row: int, change: Change, before: Row) -> None:
        if change.before_is_key:
            self._key_before.add(row, self._shape.key_of(before))
        else:
            self._before.add(row, before)

    def _add(self, op: str, change: Change, key: Row | None) -> int:
        self._ops.append(op)
        self._origins.append(change)
        self._keys.append(key if self._whole_key else None)
        return len(self._ops) - 1

    def _key_texts(self) -> pa.Array:
        present = [row for row, key in enumerate(self._keys) if key is not None]
        texts = self._key_json([self._keys[row] for row in present])
        return _spread(texts, present, len(self._keys))

    def _key_json(self, keys: Sequence[Any]) -> pa.Array:
        texts = _json(self._shape.key_columns, keys)
        if self._envelopes.with_schema:
            return joined(_with_schema(key_schema(self._envelopes.source, self._shape)), texts, "}")
        return texts

    def _values(self, before: pa.Array, after: pa.Array) -> pa.Array:
        source, shape = self._envelopes.source, self._shape
        times = numbers([change.commit_ms for change in self._origins])
        whole = joined(
            '{"before":',
            before,
            ',"after":',
            after,
            ',"source":',
            *source.parts(shape, times, [change.origin for change in self._origins]),
            ',"op":"',
            pa.array(self._ops, pa.string()),
            f'","ts_ms":{self._envelopes.clock()},"transaction":null}}',
        )
        if self._envelopes.with_schema:
            return joined(_with_schema(envelope_schema(source, shape)), whole, "}")
        return whole

    def _header_column(self, count: int) -> pa.Array:
        if self._truncated:
            return pa.array([[{"name": TRUNCATED, "value": None}]] * count, HEADERS)
        if not self._headers:
            return pa.nulls(count, HEADERS)
        rows = list(self._headers)
        keys = self._key_json([self._headers[row][1] for row in rows]).cast(pa.binary()).to_pylist()
        found: list[Any] = [None] * count
        for row, key in zip(rows, keys, strict=True):
            found[row] = [{"name": self._headers[row][0], "value": key}]
        return pa.array(found, HEADERS)


def snapshot_records(
    envelopes: Envelopes, shape: Shape, columns: Sequence[pa.Array], stream: Mapping[str, Any], read_ms: int
) -> pa.RecordBatch:
    """Return the rows of a snapshot, which are columns of text already, as records."""
    count = len(columns[0]) if columns else 0
    rendered = [column.kind.render(texts) for column, texts in zip(shape.columns, columns, strict=True)]
    after = objects([column.name for column in shape.columns], rendered)
    keys = objects([column.name for column in shape.key_columns], [rendered[index] for index in shape.key_indexes])
    source = envelopes.source
    fields = source.of_snapshot(shape, stream, read_ms)
    rest = orjson.dumps({"source": fields, "op": READ, "ts_ms": envelopes.clock(), "transaction": None}).decode()
    begin, end = '{"before":null,"after":', f",{rest[1:]}"
    if envelopes.with_schema:
        begin, end = _with_schema(envelope_schema(source, shape)) + begin, end + "}"
        keys = joined(_with_schema(key_schema(source, shape)), keys, "}")
    values = joined(begin, after, end)
    times = pa.array(np.full(count, read_ms, np.int64))
    return pa.record_batch(
        [keys.cast(pa.binary()), values.cast(pa.binary()), times, pa.nulls(count, HEADERS)], schema=RECORDS
    )


def tombstones(keys: pa.Array, at_ms: int) -> pa.RecordBatch:
    """Return records that delete keys, which are written already."""
    times = pa.array(np.full(len(keys), at_ms, np.int64))
    return pa.record_batch(
        [keys, pa.nulls(len(keys), pa.binary()), times, pa.nulls(len(keys), HEADERS)], schema=RECORDS
    )


def _json(columns: Sequence[Column], rows: Sequence[Row]) -> pa.Array:
    """Return rows of texts as JSON objects."""
    if not rows:
        return pa.array([], pa.string())
    rendered = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        missing = None
        if UNAVAILABLE in values:
            missing = np.fromiter((value is UNAVAILABLE for value in values), np.bool_, len(values))
            values = tuple([None if value is UNAVAILABLE else value for value in values])
        json = column.kind.render(column.read(values))
        rendered.append(json if missing is None else where(missing, column.kind.unavailable, json))
    return objects([column.name for column in columns], rendered)


def _spread(texts: pa.Array, targets: Sequence[int], count: int) -> pa.Array:
    """Return a column of `count` rows with the texts in their rows, and null elsewhere."""
    if len(targets) == count:
        return texts
    if not targets:
        return pa.nulls(count, pa.string())
    indexes = np.full(count, -1)
    indexes[targets] = np.arange(len(targets))
    return texts.take(pa.array(indexes, mask=indexes < 0))


def _with_schema(schema: str) -> str:
    return f'{{"schema":{schema},"payload":'
