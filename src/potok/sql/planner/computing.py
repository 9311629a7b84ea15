"""Convert checked expressions to expressions of a topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from potok.expressions.columnar import RECORD, function_of
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr
from potok.expressions.failures import RowFailures, add_rows
from potok.expressions.function import Function
from potok.sql.expressions.compute import compute
from potok.sql.expressions.conversions.kept_dates import cannot_be_kept
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.functions.function import Context
from potok.sql.planner.column_positions import NOW, LocatedRows


@dataclass(frozen=True, slots=True)
class SqlComputation:
    """Computes a checked expression from the columns `slots`, one of which may be the processing time."""

    expression: Typed
    slots: tuple[str, ...]
    now: int | None = None

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        context = Context()
        if self.now is not None and rows:
            context.now_ms = columns[self.now][0].as_py() or 0
        found = compute(self.expression, dict(zip(self.slots, columns, strict=True)), rows, context)
        far = cannot_be_kept(found)
        if far:
            found = found.take(pa.array(np.arange(rows), mask=np.isin(np.arange(rows), list(far))))
        if far or context.failures:
            add_rows(failures, str(self.expression), {**far, **context.failures})
        return found


@dataclass(frozen=True, slots=True)
class Pick:
    """Return the only column of the input."""

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        return columns[0]


def expr_of(expression: Typed, rows: LocatedRows) -> Expr:
    """Return the input of an expression from a record. A missing value reads as NULL."""
    if isinstance(expression, ColumnRef):
        return Computed(expression.type, (rows.at[expression.column],), Pick(), str(expression))
    slots = sorted(columns_of(expression))
    args = [rows.at[slot] for slot in slots]
    at_now = None
    if NOW in rows.at:
        slots, args, at_now = [*slots, NOW], [*args, rows.at[NOW]], len(slots)
    return Computed(expression.type, tuple(args), SqlComputation(expression, tuple(slots), at_now), str(expression))


def struct_of(items: Mapping[str, Expr] | Sequence[tuple[str, Expr]]) -> StructExpr:
    pairs = tuple(items.items() if isinstance(items, Mapping) else items)
    return StructExpr(pa.struct([(name, expr.type) for name, expr in pairs]), pairs)


def function_for(expr: Expr, names: tuple[str, ...] = RECORD) -> Function:
    return function_of(expr, str(expr), names)


def key_expr(expressions: Sequence[tuple[str, Expr]], *, partial: bool = False) -> Expr:
    """Build a key: one column as it is, several as a struct. A NULL in any of them makes the key NULL, unless
    `partial`."""
    if len(expressions) == 1:
        return expressions[0][1]
    items = struct_of(expressions)
    # Each part computes separately: a column that two parts read is read twice.
    parts = tuple(part for _, part in expressions)
    args = tuple(dict.fromkeys(arg for part in parts for arg in _columns(part)))
    return Computed(items.type, args, KeyStruct(parts, args, items.type, partial), str(items))


@dataclass(frozen=True, slots=True)
class KeyStruct:
    """Build a struct of columns that is NULL where any of them is, unless `partial`."""

    parts: tuple[Expr, ...]
    args: tuple[Column, ...]
    type: pa.DataType
    partial: bool = False

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        given = dict(zip(self.args, columns, strict=True))
        made = [_of(part, given, rows, failures) for part in self.parts]
        missing = None
        for column in made:
            if column.null_count and not self.partial:
                nulls = column.is_null()
                missing = nulls if missing is None else pa.compute.or_(missing, nulls)
        return pa.StructArray.from_arrays(made, fields=list(self.type), mask=missing)


def _of(part: Expr, given: Mapping[Column, pa.Array], rows: int, failures: RowFailures) -> pa.Array:
    assert isinstance(part, Computed)
    return part.compute([given[arg] for arg in part.args], rows, failures)


def _columns(part: Expr) -> tuple[Column, ...]:
    assert isinstance(part, Computed)
    return part.args
