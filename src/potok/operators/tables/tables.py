"""Tables: rows that replace each other, and steps on their changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.aggregates.aggregates import change
from potok.operators.aggregates.row_aggregates import AccumulateRecords
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.core.call import plain, python_rows, truth
from potok.operators.core.chunk import Chunk, Column, as_objects, concat_columns, from_wire, gathered, positions_of
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.unserializable import NOT_DATA, data_changes, data_records, only_data
from potok.operators.exchange.shards import key_column
from potok.operators.stateless.stateless import Transform
from potok.operators.tables.changes import blank, pick, present
from potok.operators.tables.unavailable import filled, marked_rows
from potok.operators.windows.windows import time_bytes
from potok.records.keys import encode_keys
from potok.records.schemas.schema import Schema
from potok.state.session import StateSession
from potok.topology.nodes import Session, Window


class KeepByPosition(AccumulateRecords):
    """Keep the last value of each key in the order of its partition; a null value deletes the row.

    With `every_update`, each record is a change, including one that the next replaces and a null value for no row.
    """

    every_update = False

    def _fold(self, chunk: Chunk) -> None:
        if marks := marked_rows(chunk):
            chunk = filled(chunk, marks, self._stored)
        if self._each_record:
            chunk = data_records(self, chunk, self._key_type)
        assert isinstance(chunk.key, pa.Array)
        last = {key: row for row, key in enumerate(chunk.key.to_pylist())}
        rows = np.fromiter(last.values(), np.intp, len(last))
        latest = chunk.take(rows)
        keys = list(last)
        before = self._session.read(self.name, keys)
        values = [plain(value) for value in python_rows(latest.value)]
        times = latest.timestamp.tolist()
        try:
            new = [None if v is None else encode_row(t, v) for t, v in zip(times, values, strict=True)]
        except NOT_DATA:
            rest = data_records(self, chunk, self._key_type)
            if len(rest):
                self._fold(rest)
            return
        changed = [row for row, old in enumerate(before) if new[row] is not None or old is not None]
        self._session.write(self.name, [(keys[row], new[row], before[row]) for row in changed])
        if self.every_update or (self._each_record and len(last) < len(chunk)):
            self._emit_each_row(chunk, [_value(data) for data in before])
            return
        picked = latest.take(np.array(changed, np.intp))
        previous = [_value(before[row]) for row in changed]
        old: Column = previous if self._result_type is None else pa.array(previous, self._result_type)
        self._emit_changes(picked, old)

    def _stored(self, keys: Sequence[bytes]) -> list[Any]:
        return [_value(data) for data in self._session.read(self.name, list(keys))]

    def _emit_each_row(self, chunk: Chunk, stored: list[Any]) -> None:
        """Emit one change for each record. Its row before is that of the previous record of its key, or the stored
        one, in the order in which keys first appear.
        """
        assert isinstance(chunk.key, pa.Array)
        ids = chunk.key.dictionary_encode().indices.to_numpy().astype(np.intp)
        by_key = np.argsort(ids, kind="stable")
        earlier = len(chunk) + ids
        same_key = np.flatnonzero(ids[by_key[1:]] == ids[by_key[:-1]])
        earlier[by_key[same_key + 1]] = by_key[same_key]
        rows: Column = stored if self._result_type is None else pa.array(stored, self._result_type)
        old = pick(concat_columns([chunk.value, rows]), earlier)
        real = present(chunk.value) | present(old) | self.every_update
        self._emit_changes(chunk.where(real), pick(old, np.flatnonzero(real)))

    def _emit_changes(self, causes: Chunk, old: Column) -> None:
        keys, positions = key_column(causes.key, self._key_type), positions_of(causes)
        made = change(keys, causes.value, old, causes.timestamp, causes.stream_time, positions, causes.headers)
        made.alignment_time = causes.alignment_time
        self.emit(made)


def _value(data: bytes | None) -> Any:
    return None if data is None else decode_row(data)[1]


def _cells(chunk: Chunk) -> list[bytes | None]:
    rows = zip(chunk.timestamp.tolist(), python_rows(chunk.value), strict=True)
    return [None if value is None else encode_row(time, plain(value)) for time, value in rows]


def _real(chunk: Chunk) -> Chunk:
    """Return the changes that have a row before or after them."""
    return chunk if chunk.before is None else chunk.where(present(chunk.value) | present(chunk.before))


class Keep(Operator):
    """Store the changes of a derived table as a table; windows are stored under their key and start, sessions also
    under their end.
    """

    counted = False

    def __init__(self, name: str, task: Task, session: StateSession, window: Window | None) -> None:
        super().__init__(name, task)
        self._session, self._window = session, window
        self._rows: dict[bytes, tuple[bytes | None, bytes | None]] = {}

    def process(self, chunk: Chunk) -> None:
        keys = self._cell_keys(chunk.key)
        before = self._session.read(self.name, keys)
        visible = self._visible(chunk, keys, before)
        try:
            cells = _cells(visible)
        except NOT_DATA:
            visible = data_changes(self, visible)
            cells = _cells(visible)
        for key, new, old in zip(keys, cells, before, strict=True):
            # A row of this batch may also expire in this batch.
            if new is not None or old is not None or key in self._rows:
                self._rows[key] = (new, old)
        self.emit(chunk if visible is chunk else _real(visible))

    def _visible(self, chunk: Chunk, keys: list[bytes], before: list[bytes | None]) -> Chunk:
        """Drop previous values that were not data: they were never rows of this table. Rows that have a cell need no
        check."""
        if not isinstance(chunk.before, list):
            return chunk
        unknown = [
            row
            for row, (key, old, value) in enumerate(zip(keys, before, chunk.before, strict=True))
            if value is not None and self._rows.get(key, (old,))[0] is None
        ]
        if not unknown:
            return chunk
        _, errors = only_data([chunk.before[row] for row in unknown])
        never = {unknown[number]: text for number, text in errors.items()}
        return replace(chunk, before=blank(chunk.before, all_but(never, len(chunk)))) if never else chunk

    @property
    def state_tables(self) -> list[str]:
        return [self.name]

    def _cell_keys(self, column: Column) -> list[bytes]:
        if self._window is None:
            keys: list[bytes] = encode_keys(column).to_pylist()
            return keys
        if isinstance(column, list):
            inner: Column = [key["key"] for key in column]
            starts, ends = (np.array([key[side] for key in column], np.int64) for side in ("start", "end"))
        else:
            inner, starts, ends = column.field(0), column.field(1).to_numpy(), column.field(2).to_numpy()
        parts = [encode_keys(inner).to_pylist(), time_bytes(starts)]
        parts += [time_bytes(ends)] if isinstance(self._window, Session) else []
        return [b"".join(part) for part in zip(*parts, strict=True)]

    def finish(self) -> None:
        self._session.write(self.name, [(key, new, old) for key, (new, old) in self._rows.items()])
        self._rows = {}


class TableFilter(Operator):
    """Keep the rows that satisfy a predicate; a row that no longer does is deleted."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, negate: bool) -> None:
        super().__init__(name, task)
        self._function, self._expr, self._negate = function, expr, negate

    def process(self, chunk: Chunk) -> None:
        assert chunk.before is not None
        after = self._passes(chunk, report=True)
        before = self._passes(chunk.with_value(chunk.before), report=False)
        result = chunk.with_value(blank(chunk.value, after))
        result.before = blank(chunk.before, before)
        self.emit(result.where(after | before))

    def _passes(self, chunk: Chunk, *, report: bool) -> npt.NDArray[np.bool_]:
        passes = present(chunk.value)
        rows = np.flatnonzero(passes)
        if len(rows):
            part = chunk.take(rows)
            log = self.task.failures if report else None
            mask, errors = truth(self._expr, self._function, part, log)
            mask = ~mask if self._negate else mask
            mask[list(errors)] = False
            if errors and report:
                self.task.dead_letters.add(part, errors, self.name, Reason.ERROR)
            passes[rows] = mask
        return passes


class TableMapValues(Transform):
    """Replace the value of each row, before and after; a row whose function raises is deleted and set aside."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, schema: Schema | None) -> None:
        super().__init__(name, task, function, expr)
        self._schema = schema

    def process(self, chunk: Chunk) -> None:
        assert chunk.before is not None
        after = self._mapped(chunk, report=True)
        before = self._mapped(chunk.with_value(chunk.before), report=False)
        result = chunk.with_value(after)
        result.before = before
        nothing = ~(present(chunk.value) | present(chunk.before))  # a tombstone for no row is passed on
        self.emit(result.where(present(after) | present(before) | nothing))

    def _mapped(self, chunk: Chunk, *, report: bool) -> Column:
        rows = np.flatnonzero(present(chunk.value))
        if not len(rows):
            return self._nothing(len(chunk))
        part = chunk.take(rows)
        called = self.call(part, report=report)
        fitted = self.fit(called.column, self._schema)
        errors = {**fitted.errors, **called.errors}
        if errors and report:
            self.task.dead_letters.add(part, errors, self.name, Reason.ERROR)
        good = np.ones(len(part), np.bool_)
        good[list(errors)] = False
        column = blank(fitted.column, good)
        if len(rows) == len(chunk):
            return column
        if isinstance(column, list):
            spread: list[Any] = [None] * len(chunk)
            for row, value in zip(rows, column, strict=True):
                spread[row] = value
            return spread
        indexes = np.full(len(chunk), -1)
        indexes[rows] = np.arange(len(rows))
        return column.take(pa.array(indexes, mask=indexes < 0))

    def _nothing(self, count: int) -> Column:
        if self._expr is not None:
            return pa.nulls(count, self._expr.type)
        return pa.nulls(count, self._schema.arrow) if self._schema else [None] * count


class ToStream(Operator):
    """The changes of a table as records. Dropping an expired window is not a change of its result."""

    def __init__(self, name: str, task: Task, *, changes: bool) -> None:
        super().__init__(name, task)
        self._changes = changes

    def process(self, chunk: Chunk) -> None:
        if not chunk.expired:
            self.emit(replace(chunk, value=both_sides(chunk) if self._changes else chunk.value, before=None))


def both_sides(chunk: Chunk) -> Column:
    """Return changes as values that hold both the value before and the value after."""
    assert chunk.before is not None
    if isinstance(chunk.value, list) or isinstance(chunk.before, list):
        sides = zip(as_objects(chunk.before), as_objects(chunk.value), strict=True)
        return [{"before": before, "after": after} for before, after in sides]
    return pa.StructArray.from_arrays([chunk.before, chunk.value], ["before", "after"])


class Receive(Operator):
    """Records that came through an exchange, in the order of their positions."""

    counted = False

    def __init__(self, name: str, task: Task) -> None:
        super().__init__(name, task)
        self._chunks: list[Chunk] = []

    def receive(self, payload: bytes) -> None:
        self._chunks.append(from_wire(payload))

    def finish(self) -> None:
        for intact, expired in ((True, False), (False, False), (False, True)):
            chunks = [chunk for chunk in self._chunks if (chunk.intact, chunk.expired) == (intact, expired)]
            if chunks:
                self.emit(replace(gathered(chunks), expired=expired))
        self._chunks = []
