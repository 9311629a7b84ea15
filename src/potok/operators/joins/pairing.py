"""Combine two values: by the user's function, on columns if it was traced, or as a dict of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.expressions.evaluate import evaluate
from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.call import Called, Errors, describe_error, patch, plain_all, python_rows
from potok.operators.core.chunk import Column, as_objects
from potok.operators.tables.changes import pick
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class Joiner:
    """Called with left and right value, or with key, left and right. Without a function, the result is a dict of
    both."""

    function: Function | None
    expr: Expr | None
    schema: Schema | None

    def __call__(self, keys: Column, left: Column, right: Column) -> Called:
        if self.function is None:
            called = Called(_both(left, right), {})
        elif self.expr is not None:
            return self._traced(self.function, self.expr, [keys, left, right])
        else:
            results, errors = self._python(self.function, [keys, left, right])
            called = Called(plain_all(results), errors)
        if self.schema is None:
            return called
        fitted = column_of(as_objects(called.column), self.schema)
        return Called(fitted.column, {**fitted.errors, **called.errors})

    def _traced(self, function: Function, expr: Expr, columns: list[Column]) -> Called:
        named = dict(zip(("key", "left", "right"), columns, strict=True))
        typed = {name: column for name, column in named.items() if not isinstance(column, list)}
        result = evaluate(expr, typed, len(columns[1]))
        if result.suspect is None:
            return Called(result.column, {})
        rows = np.flatnonzero(result.suspect.to_numpy(zero_copy_only=False))
        values, errors = self._python(function, [pick(column, rows) for column in columns])
        column, misfits = patch(result.column, rows, plain_all(values))
        return Called(column, {**{int(rows[i]): text for i, text in errors.items()}, **misfits})

    def _python(self, function: Function, columns: list[Column]) -> tuple[list[Any], Errors]:
        given = columns[3 - function.arity :]
        return call_rows(function.callable, [python_rows(column, function) for column in given])


def _both(left: Column, right: Column) -> Column:
    if isinstance(left, list) or isinstance(right, list):
        pairs = zip(as_objects(left), as_objects(right), strict=True)
        return [{"left": one, "right": other} for one, other in pairs]
    return pa.StructArray.from_arrays([left, right], ["left", "right"])


def call_rows(function: Callable[..., Any], arguments: list[list[Any]]) -> tuple[list[Any], Errors]:
    """Call a function of any number of arguments, row by row; a row that raises has no result."""
    results: list[Any] = []
    errors: Errors = {}
    append, rest, count = results.append, zip(*arguments, strict=True), len(arguments[0])
    while len(results) < count:
        try:
            for given in rest:
                append(function(*given))
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            errors[len(results)] = describe_error(error)
            append(None)
    return results, errors
