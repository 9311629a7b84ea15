"""Send the rows of a table to groups: each change removes a row from a group and adds one to a group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.call import Errors, call_python, call_traced, plain_all
from potok.operators.core.chunk import Chunk, Column, concat
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.stateless.stateless import pairs_of
from potok.operators.tables.changes import blank, pick, present, scatter, settle
from potok.records.keys import encode_each_key, encode_keys
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Side:
    """One side of many changes: the groups as bytes, and what the rows add to them, if they are in a group."""

    keys: list[bytes | None]
    values: Column
    there: Mask


class GroupChanges(Operator):
    """Send each row, before and after, to its group. A row whose function raises is in no group.

    With `every_update`, a group that held a row only between two changes of one batch gets a change from null to
    null.
    """

    every_update = False

    def __init__(
        self,
        name: str,
        task: Task,
        function: Function,
        expr: Expr | None,
        schemas: tuple[Schema | None, Schema | None],
        *,
        pairs: bool,
    ) -> None:
        super().__init__(name, task)
        self._function, self._expr, self._pairs = function, expr, pairs
        self._key_schema, self._schema = schemas
        self._chunks: list[Chunk] = []

    def process(self, chunk: Chunk) -> None:
        if not chunk.expired:  # an expired window stays counted where it was counted
            self._chunks.append(chunk)

    def finish(self) -> None:
        if not self._chunks:
            return
        chunks, self._chunks = self._chunks, []
        keys, chunk = settle(chunks)
        if self.every_update:
            self._send_passed(concat(chunks))
        assert chunk.before is not None
        after = self._side(chunk, report=True)
        before = self._side(chunk.with_value(chunk.before), report=False)
        chunk.home = pa.array(keys, pa.binary())
        self._send(chunk, before, after)

    def _send(self, chunk: Chunk, before: Side, after: Side) -> None:
        """Send one change for a row that stays in its group, two for one that does not."""
        equal = np.fromiter((a == b for a, b in zip(after.keys, before.keys, strict=True)), np.bool_, len(chunk))
        stays = equal & after.there & before.there
        leaves, comes = before.there & ~stays, after.there & ~stays
        rows = np.concatenate([np.flatnonzero(mask) for mask in (stays, leaves, comes)])
        old = np.arange(len(rows)) < np.count_nonzero(stays) + np.count_nonzero(leaves)
        new = ~old
        new[: np.count_nonzero(stays)] = True
        keys = [(after if is_new else before).keys[row] for row, is_new in zip(rows.tolist(), new, strict=True)]
        moved = replace(chunk.take(rows), key=pa.array(keys, pa.binary()))
        moved.value, moved.before = blank(pick(after.values, rows), new), blank(pick(before.values, rows), old)
        self.emit(moved)

    def _send_passed(self, chunk: Chunk) -> None:
        """Send changes to the groups of all rows but the last of each key, at the time when the row left."""
        keys: list[bytes] = encode_keys(chunk.key).to_pylist()
        after: dict[bytes, int] = {}
        left: dict[int, int] = {}
        for row in reversed(range(len(keys))):
            if keys[row] in after:
                left[row] = after[keys[row]]
            after[keys[row]] = row
        if not left:
            return
        rows = np.array(sorted(left), np.intp)
        passed = chunk.take(rows)
        later = [left[row] for row in rows.tolist()]
        passed.timestamp = np.maximum(passed.timestamp, chunk.timestamp[later])
        passed.stream_time = np.maximum(passed.stream_time, chunk.stream_time[later])
        passed.home = pa.array([keys[row] for row in rows.tolist()], pa.binary())
        side = self._side(passed, report=False)
        there = np.flatnonzero(side.there)
        absent = np.zeros(len(there), np.bool_)
        moved = replace(passed.take(there), key=pa.array([side.keys[row] for row in there.tolist()], pa.binary()))
        moved.value = moved.before = blank(pick(side.values, there), absent)
        if len(there):
            self.emit(moved)

    def _side(self, chunk: Chunk, *, report: bool) -> Side:
        """Return the groups of the rows with a value. Errors of the previous row have already been reported."""
        count, rows = len(chunk), np.flatnonzero(present(chunk.value))
        part = chunk.take(rows)
        keys, values, errors = self._call(part, report=report)
        encoded = encode_each_key(keys)
        errors = {**encoded.errors, **errors}
        canonical: list[bytes | None] = encoded.values.to_pylist()
        if report and errors:
            self.task.dead_letters.add(part, errors, self.step, Reason.ERROR)
        missing = [row for row, key in enumerate(canonical) if key is None and row not in errors]
        out = dict.fromkeys(errors) | dict.fromkeys(self.without_key(part, missing, report=report))
        there = np.zeros(count, np.bool_)
        there[rows[all_but(out, len(part))]] = True
        scattered = scatter(canonical, rows, count)
        assert isinstance(scattered, list)
        spread = scatter(values, rows, count)
        return Side(scattered, spread, there & present(spread))

    def without_key(self, part: Chunk, rows: list[int], *, report: bool) -> list[int]:
        """Return which rows are rejected of those whose function returned None: here, all of them."""
        if rows and report:
            errors = dict.fromkeys(rows, "the row has no group")
            self.task.dead_letters.add(part, errors, self.step, Reason.NO_KEY)
        return rows

    def _call(self, part: Chunk, *, report: bool) -> tuple[Column, Column, Errors]:
        """Return the groups and the values of rows."""
        if self._expr is not None:
            called = call_traced(self._expr, self._function, part, self.task.failures if report else None)
            if self._pairs:
                assert isinstance(called.column, pa.Array)
                return called.column.field(0), called.column.field(1), called.errors
            return called.column, part.value, called.errors
        results, errors = call_python(self._function, part)
        if not self._pairs:
            keys, misfits = fitted(plain_all(results), self._key_schema)
            return keys, part.value, {**misfits, **errors}
        keys, values = pairs_of(results, errors)
        keys, wrong_keys = fitted(keys, self._key_schema)
        values, wrong_values = fitted(values, self._schema)
        return keys, values, {**wrong_keys, **wrong_values, **errors}


def fitted(values: list[Any], schema: Schema | None) -> tuple[Any, Errors]:
    """Convert results to the declared type, if there is one."""
    if schema is None:
        return values, {}
    decoded = column_of(values, schema)
    return decoded.column, decoded.errors
