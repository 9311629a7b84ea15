"""The rows that an expression is computed for: all of a chunk, those of a CASE branch, or the elements that a lambda is
called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.sql.budget import LARGEST_VALUE, reserve, reserve_taken, size_of
from potok.sql.functions.function import Context

Mask = npt.NDArray[np.bool_]

Values = Any
"""A `pa.Array` with a value per row, or a `pa.Scalar` for all rows. pyarrow has no type for this."""


class Frame:
    """Columns and parameters by name. Columns of a subset of the rows are taken on demand."""

    def __init__(
        self,
        columns: Mapping[str, pa.Array],
        rows: int,
        context: Context,
        *,
        parameters: Mapping[str, pa.Array] | None = None,
        outer: Frame | None = None,
        taken: pa.Array | None = None,
    ) -> None:
        self.rows = rows
        self.context = context
        self._columns = dict(columns)
        self._parameters = dict(parameters or {})
        self._outer = outer
        self._taken = taken
        self._held = 0
        self.missing: Mask | None = None
        """Rows that cannot be computed because an operand is NULL. They are not reported."""

    def column(self, name: str) -> pa.Array:
        if name not in self._columns and self._outer is not None:
            self._columns[name] = self._take(self._outer.column(name))
        return self._columns[name]

    def parameter(self, name: str) -> pa.Array:
        if name not in self._parameters and self._outer is not None:
            self._parameters[name] = self._take(self._outer.parameter(name))
        return self._parameters[name]

    def _take(self, column: pa.Array) -> pa.Array:
        """Take rows of a column of the outer frame. The memory counts for the lifetime of this frame."""
        reserve(self._held)
        reserve_taken(column, self._taken)
        found = column.take(self._taken)
        self._held += size_of(found)
        return found

    def at(self, taken: pa.Array, parameters: Mapping[str, pa.Array] | None = None) -> Frame:
        """Return the frame of these rows (a row may occur several times), with separate failures until `note` merges
        them."""
        inner = Context(now_ms=self.context.now_ms)
        return Frame({}, len(taken), inner, parameters=parameters, outer=self, taken=taken)

    def aside(self) -> Frame:
        """Return the same rows with separate failures."""
        frame = Frame(self._columns, self.rows, Context(now_ms=self.context.now_ms), parameters=self._parameters)
        frame._outer, frame._taken = self._outer, self._taken
        return frame

    def note(self, inner: Frame) -> None:
        """Merge the failures of a frame made by `at`."""
        if inner._taken is None:
            return
        for found, own in (
            (inner.context.failures, self.context.failures),
            (inner.context.contained, self.context.contained),
        ):
            for row, reason in found.items():
                own.setdefault(inner._taken[row].as_py(), reason)
        if inner.missing is not None:
            rows = np.zeros(self.rows, np.bool_)
            rows[inner._taken.to_numpy(zero_copy_only=False)[inner.missing]] = True
            self._miss(rows)

    def merge(self, inner: Frame, counts: Values) -> None:
        """Merge the failures of a frame made by `aside`, for the rows where they count."""
        if not inner.has_failed and not inner.context.contained:
            return
        counted = spread(counts, self.rows).to_numpy(zero_copy_only=False)
        for found, own in (
            (inner.context.failures, self.context.failures),
            (inner.context.contained, self.context.contained),
        ):
            for row, reason in found.items():
                if counted[row]:
                    own.setdefault(row, reason)
        if inner.missing is not None:
            self._miss(inner.missing & counted)

    def note_nulls(self, values: Values) -> None:
        """Treat NULL rows as not computable."""
        if isinstance(values, pa.Scalar):
            if not values.is_valid:
                self._miss(np.ones(self.rows, np.bool_))
        elif values.null_count:
            self._miss(values.is_null().to_numpy(zero_copy_only=False))

    def _miss(self, rows: Mask) -> None:
        self.missing = rows if self.missing is None else self.missing | rows

    @property
    def has_failed(self) -> bool:
        return bool(self.context.failures) or self.missing is not None

    def contain(self, values: Values, inner: Frame) -> Values:
        """Return values from a frame made by `aside`, NULL in the rows that failed; the failures stay there."""
        for found in (inner.context.contained, inner.context.failures):
            for row, reason in found.items():
                self.context.contained.setdefault(row, reason)
        return inner.without_failed(values)

    def without_failed(self, values: Values) -> Values:
        """Return the values, NULL in the rows that could not be computed."""
        if not self.has_failed:
            return values
        failed = np.zeros(self.rows, np.bool_) if self.missing is None else self.missing.copy()
        failed[list(self.context.failures)] = True
        return spread(values, self.rows).take(pa.array(np.arange(self.rows), mask=failed))


def spread(values: Values, rows: int) -> pa.Array:
    """Return an array, also for a scalar."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if not isinstance(values, pa.Scalar):
        return values
    if not values.is_valid:
        return pa.nulls(rows, values.type)
    reserve_spread(values, rows)
    return pa.repeat(values, rows)


def reserve_spread(values: Values, rows: int) -> None:
    """Reserve memory for a scalar repeated in all rows; a column exists already."""
    if isinstance(values, _TEXTS):
        size = len(values.as_buffer() or b"") * rows
    elif isinstance(values, _NESTED):
        size = size_of(pa.repeat(values, 1)) * rows
    else:
        return
    if size > LARGEST_VALUE:
        reserve(size)


_TEXTS = (pa.StringScalar, pa.BinaryScalar)
_NESTED = (pa.ListScalar, pa.MapScalar, pa.StructScalar)
