"""The parts of conditions and measures that read a match: single rows, and aggregates over rows.

The rest of an expression is computed from these as from columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.schemas.declared_schema import declared_schema
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context, Fold
from potok.sql.types import BIGINT
from potok.topology.patterns.output import Ints

CLASSIFIER = "classifier()"
"""The column with the variable of each row."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The rows that a leaf sees, as ranges: one for each result."""

    starts: Ints
    ends: Ints
    numbers: Ints
    """The number of the match; 0 without one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of matches: their columns, and the number of the variable of each."""

    columns: Mapping[str, pa.Array]
    variables: Ints

    def computed(self, expression: Typed, context: Context) -> pa.Array:
        return compute(expression, self.columns, len(self.variables), context)


@dataclass(frozen=True, slots=True)
class Leaf:
    """`variables` are the numbers of those whose rows count; None is all. With `final` all rows of a match are seen,
    otherwise those up to the current one."""

    type: pa.DataType
    variables: frozenset[int] | None
    final: bool

    def compute(self, rows: Rows, frames: Frames, context: Context) -> pa.Array:
        raise NotImplementedError

    def _mask(self, rows: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.variables is None:
            return np.ones(len(rows.variables), np.bool_)
        return np.isin(rows.variables, list(self.variables))


@dataclass(frozen=True, slots=True)
class Pick(Leaf):
    """An expression over one row: the first or the last one, or `offset` rows from there."""

    expression: Typed
    from_first: bool = False
    offset: int = 0

    def compute(self, rows: Rows, frames: Frames, context: Context) -> pa.Array:
        positions = np.flatnonzero(self._mask(rows))
        low, high = np.searchsorted(positions, frames.starts), np.searchsorted(positions, frames.ends)
        index = low + self.offset if self.from_first else high - 1 - self.offset
        missing = (index >= high) | (index < low)
        if not len(positions):
            return pa.nulls(len(index), self.type)
        at = positions[np.where(missing, 0, index)]
        return rows.computed(self.expression, context).take(pa.array(at, mask=missing))


@dataclass(frozen=True, slots=True)
class Aggregate(Leaf):
    """An aggregate over rows."""

    arguments: tuple[Typed, ...]
    fold: Fold
    text: str

    def compute(self, rows: Rows, frames: Frames, context: Context) -> pa.Array:
        """Add rows one by one: ranges with the same start grow."""
        mask = self._mask(rows).tolist()
        arguments = [rows.computed(argument, context).to_pylist() for argument in self.arguments]
        results: list[Any] = []
        start, at, state, result, failed = -1, 0, self.fold.start(), None, ""
        for number, (low, high) in enumerate(zip(frames.starts.tolist(), frames.ends.tolist(), strict=True)):
            if low != start or high < at:
                start, at, state, failed = low, low, self.fold.start(), ""
            try:
                while at < high and not failed:
                    if mask[at]:
                        state = self.fold.add(state, *(column[at] for column in arguments))
                    at += 1
                result = None if failed else self.fold.result(state)
            except (ArithmeticError, ValueError) as error:
                result, failed = None, f"{self.text}: {error}"
            if failed:
                context.failures[number] = failed
            results.append(result)
        return typed_column(results, self.type)


@dataclass(frozen=True, slots=True)
class MatchNumber(Leaf):
    """The number of a match among those of its partition."""

    def compute(self, rows: Rows, frames: Frames, context: Context) -> pa.Array:
        return pa.array(frames.numbers, BIGINT, mask=frames.numbers == 0)


def typed_column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Convert Python values to a column; a value that does not match the type becomes NULL."""
    schema = declared_schema(type_)
    assert schema is not None
    return fit(values, schema, Reading.PYTHON).column
