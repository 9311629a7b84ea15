"""Tables at work: rows that replace each other, and steps on their changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.kernels.aggregates import change
from potok.kernels.call import Errors, describe_error, plain, python_rows, truth
from potok.kernels.chunk import Chunk, Column, as_objects, from_wire, gathered
from potok.kernels.dead_letters import Reason
from potok.kernels.fold import UNFIT, FoldRecords
from potok.kernels.operator import Operator, Task, all_but
from potok.kernels.shards import key_column
from potok.kernels.stateless import Transform
from potok.kernels.windows import time_bytes
from potok.records.keys import encode_keys
from potok.records.schema import Schema
from potok.state.codec import dump_state, load_own_state
from potok.state.session import StateSession
from potok.topology.nodes import Session, Window


class KeepByPosition(FoldRecords):
    """The last value of each key in the order of its partition; a null value deletes the row."""

    def _fold(self, chunk: Chunk) -> None:
        assert isinstance(chunk.key, pa.Array)
        last = {key: row for row, key in enumerate(chunk.key.to_pylist())}
        rows = np.fromiter(last.values(), np.intp, len(last))
        latest = chunk.take(rows)
        keys = list(last)
        before = self._session.read(self.name, keys)
        values = [plain(value) for value in python_rows(latest.value)]
        times = latest.timestamp.tolist()
        try:
            new = [None if v is None else dump_state((t, v)) for t, v in zip(times, values, strict=True)]
        except UNFIT:
            self._without_unfit(chunk)
            return
        changed = [row for row, old in enumerate(before) if new[row] is not None or old is not None]
        self._session.write(self.name, [(keys[row], new[row], before[row]) for row in changed])
        picked = latest.take(np.array(changed, np.intp))
        previous = [_value(before[row]) for row in changed]
        old: Column = previous if self._result_type is None else pa.array(previous, self._result_type)
        self.emit(
            change(key_column(picked.key, self._key_type), picked.value, old, picked.timestamp, picked.stream_time)
        )

    def _without_unfit(self, chunk: Chunk) -> None:
        """Set aside the records whose values are no data, and take the others."""
        errors: Errors = {}
        for row, value in enumerate(python_rows(chunk.value)):
            try:
                dump_state(plain(value))
            except UNFIT as error:
                errors[row] = describe_error(error)
        self.task.dead_letters.add(
            chunk.with_key(key_column(chunk.key, self._key_type)), errors, self.name, Reason.ERROR
        )
        rest = chunk.where(all_but(errors, len(chunk)))
        if len(rest):
            self._fold(rest)


def _value(data: bytes | None) -> Any:
    return None if data is None else load_own_state(data)[1]


class Keep(Operator):
    """Keeps the changes of a derived table as a table of its own; windows are kept under their key and start, sessions
    under their end too."""

    counted = False

    def __init__(self, name: str, task: Task, session: StateSession, window: Window | None) -> None:
        super().__init__(name, task)
        self._session, self._window = session, window
        self._rows: dict[bytes, tuple[bytes | None, bytes | None]] = {}

    def process(self, chunk: Chunk) -> None:
        keys = self._cell_keys(chunk.key)
        before = self._session.read(self.name, keys)
        times = chunk.timestamp.tolist()
        for key, time, value, old in zip(keys, times, python_rows(chunk.value), before, strict=True):
            new = None if value is None else dump_state((time, plain(value)))
            # A row that this batch brought may be gone with this batch, too.
            if new is not None or old is not None or key in self._rows:
                self._rows[key] = (new, old)
        self.emit(chunk)

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


def present(column: Column) -> npt.NDArray[np.bool_]:
    if isinstance(column, list):
        return np.fromiter((item is not None for item in column), np.bool_, len(column))
    return ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def blank(column: Column, keep: npt.NDArray[np.bool_]) -> Column:
    """The column with nothing where `keep` is false."""
    if isinstance(column, list):
        return [item if kept else None for item, kept in zip(column, keep, strict=True)]
    rows = np.where(keep, np.arange(len(column)), -1)
    return column.take(pa.array(rows, mask=~keep))


class TableFilter(Operator):
    """Rows that satisfy a predicate; one that no longer does is deleted."""

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
            mask, errors = truth(self._expr, self._function, part)
            mask = ~mask if self._negate else mask
            mask[list(errors)] = False
            if errors and report:
                self.task.dead_letters.add(part, errors, self.name, Reason.ERROR)
            passes[rows] = mask
        return passes


class TableMapValues(Transform):
    """The value of each row replaced, before and after; a row whose function raises is deleted and set aside."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, schema: Schema | None) -> None:
        super().__init__(name, task, function, expr)
        self._schema = schema

    def process(self, chunk: Chunk) -> None:
        assert chunk.before is not None
        after = self._mapped(chunk, report=True)
        before = self._mapped(chunk.with_value(chunk.before), report=False)
        result = chunk.with_value(after)
        result.before = before
        self.emit(result.where(present(after) | present(before)))

    def _mapped(self, chunk: Chunk, *, report: bool) -> Column:
        rows = np.flatnonzero(present(chunk.value))
        if not len(rows):
            return self._nothing(len(chunk))
        part = chunk.take(rows)
        called = self.call(part)
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
        places = np.full(len(chunk), -1)
        places[rows] = np.arange(len(rows))
        return column.take(pa.array(places, mask=places < 0))

    def _nothing(self, count: int) -> Column:
        if self._expr is not None:
            return pa.nulls(count, self._expr.type)
        return pa.nulls(count, self._schema.arrow) if self._schema else [None] * count


class ToStream(Operator):
    """The changes of a table as records. A window that is dropped because it is over is no change of its result."""

    def __init__(self, name: str, task: Task, *, changes: bool) -> None:
        super().__init__(name, task)
        self._changes = changes

    def process(self, chunk: Chunk) -> None:
        if not chunk.expired:
            self.emit(replace(chunk, value=both_sides(chunk) if self._changes else chunk.value, before=None))


def both_sides(chunk: Chunk) -> Column:
    """Changes as values that hold what was before and what is after."""
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
