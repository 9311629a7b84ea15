"""Steps that process one record at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.call import Called, Errors, call_python, call_traced, describe_error, plain, plain_all, truth
from potok.operators.core.chunk import Chunk, Column, as_objects
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, SeveralOutputs, Task, all_but
from potok.operators.tables.changes import blank, present
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema


class Filter(Operator):
    """Keep the records for which the predicate is true, or false."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, negate: bool) -> None:
        super().__init__(name, task)
        self._function, self._expr, self._negate = function, expr, negate

    def process(self, chunk: Chunk) -> None:
        mask, errors = truth(self._expr, self._function, chunk, self.task.failures)
        if self._negate:
            mask = ~mask
        if errors:
            mask[list(errors)] = False
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        self.emit(chunk.where(mask))


class Branch(SeveralOutputs):
    """Send each record to the first arm whose predicate is true."""

    def __init__(self, name: str, task: Task, arms: Sequence[tuple[Function, Expr | None]]) -> None:
        super().__init__(name, task)
        self._arms = arms

    def process(self, chunk: Chunk) -> None:
        open_rows = np.ones(len(chunk), np.bool_)
        for index, (function, expr) in enumerate(self._arms):
            part = chunk.where(open_rows)
            if not len(part):
                return
            mask, errors = truth(expr, function, part, self.task.failures)
            if errors:
                mask[list(errors)] = False
                self.task.dead_letters.add(part, errors, self.name, Reason.ERROR)
            self._send(index, part.where(mask))
            rows = np.flatnonzero(open_rows)
            open_rows[rows[mask]] = False
            open_rows[rows[list(errors)]] = False
        self._send(len(self._arms), chunk.where(open_rows))

    def _send(self, index: int, chunk: Chunk) -> None:
        if len(chunk):
            self.task.records_out[self.name] += len(chunk)
            for arm in self.outputs.get(index, []):
                arm.push(chunk)


class Merge(Operator):
    """Merge the records of several streams; where their types differ, they become dynamic values."""

    def __init__(self, name: str, task: Task, *, dynamic_key: bool, dynamic_value: bool) -> None:
        super().__init__(name, task)
        self._dynamic_key, self._dynamic_value = dynamic_key, dynamic_value

    def process(self, chunk: Chunk) -> None:
        if self._dynamic_key and not isinstance(chunk.key, list):
            chunk = chunk.with_key(as_objects(chunk.key))
        if self._dynamic_value and not isinstance(chunk.value, list):
            chunk = replace(chunk, value=as_objects(chunk.value))
        self.emit(chunk)


class Transform(Operator):
    """A step that replaces key or value by the result of a function."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None) -> None:
        super().__init__(name, task)
        self._function, self._expr = function, expr

    def call(self, chunk: Chunk, *, report: bool = True) -> Called:
        if self._expr is not None:
            return call_traced(self._expr, self._function, chunk, self.task.failures if report else None)
        results, errors = call_python(self._function, chunk)
        return Called(plain_all(results), errors)

    def drop(self, chunk: Chunk, errors: Errors) -> Chunk:
        """Return the chunk without the records that failed."""
        return chunk.where(all_but(errors, len(chunk))) if errors else chunk

    def fit(self, column: Column, schema: Schema | None) -> Called:
        """Convert the results to the declared type, if there is one."""
        if schema is None or not isinstance(column, list):
            return Called(column, {})
        decoded = column_of(column, schema)
        return Called(decoded.column, decoded.errors)

    def result(self, chunk: Chunk, schema: Schema | None) -> Called:
        """Call the function, and convert its results to the declared type; records that fail become dead letters."""
        called = self.call(chunk)
        fitted = self.fit(called.column, schema)
        errors = {**fitted.errors, **called.errors}
        if errors:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        return Called(fitted.column, errors)


class MapValues(Transform):
    """Replace the value."""

    def __init__(
        self,
        name: str,
        task: Task,
        function: Function,
        expr: Expr | None,
        schema: Schema | None,
        *,
        null_stays: bool = False,
    ) -> None:
        super().__init__(name, task, function, expr)
        self._schema, self._null_stays = schema, null_stays

    def process(self, chunk: Chunk) -> None:
        made = self.result(chunk, self._schema)
        column = without_null(made.column, chunk) if self._null_stays else made.column
        self.emit(self.drop(chunk.with_value(column), made.errors))


class SelectKey(Transform):
    """Replace the key."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, schema: Schema | None) -> None:
        super().__init__(name, task, function, expr)
        self._schema = schema

    def process(self, chunk: Chunk) -> None:
        keys = self.result(chunk, self._schema)
        self.emit(self.drop(chunk.with_key(keys.column), keys.errors))


class Map(Transform):
    """Replace key and value; traced, the result is a struct of both."""

    def __init__(
        self,
        name: str,
        task: Task,
        function: Function,
        expr: Expr | None,
        key: Schema | None,
        value: Schema | None,
        *,
        null_stays: bool = False,
        value_parts: tuple[int, ...] = (),
    ) -> None:
        super().__init__(name, task, function, expr)
        self._key, self._value, self._null_stays, self._value_parts = key, value, null_stays, value_parts

    def process(self, chunk: Chunk) -> None:
        called = self.call(chunk)
        errors = dict(called.errors)
        keys: Column
        values: Column
        if isinstance(called.column, list):
            keys, values = pairs_of(called.column, errors)
        else:
            keys, values = called.column.field(0), called.column.field(1)
        fitted_keys, fitted_values = self.fit(keys, self._key), self.fit(values, self._value)
        errors = {**fitted_keys.errors, **fitted_values.errors, **errors}
        if errors:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        made, named = fitted_values.column, fitted_keys.column
        if self._null_stays:
            made, named = without_null(made, chunk), without_parts(named, self._value_parts, chunk)
        result = replace(chunk.with_value(made), key=named)
        self.emit(self.drop(result, errors))


class Flatten(Transform):
    """Replace a value by those of a list that is computed as a column."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr) -> None:
        super().__init__(name, task, function, expr)

    def process(self, chunk: Chunk) -> None:
        called = self.call(chunk)
        if called.errors:
            self.task.dead_letters.add(chunk, called.errors, self.name, Reason.ERROR)
        lists = pc.if_else(pa.array(all_but(called.errors, len(chunk))), called.column, None)
        rows = pc.list_parent_indices(lists).to_numpy()
        if len(rows):
            self.emit(chunk.take(rows).with_value(pc.list_flatten(lists)))


class FlatMap(Transform):
    """Replace a record by several, with new keys or under the old one."""

    def __init__(
        self,
        name: str,
        task: Task,
        function: Function,
        key: Schema | None,
        value: Schema | None,
        *,
        values_only: bool,
    ) -> None:
        super().__init__(name, task, function, None)
        self._key, self._value, self._values_only = key, value, values_only

    def process(self, chunk: Chunk) -> None:
        results, errors = call_python(self._function, chunk)
        rows: list[int] = []
        keys: list[Any] = []
        values: list[Any] = []
        for row, result in enumerate(results):
            if row in errors:
                continue
            try:
                new_keys, new_values = self._expand(result)
            except Exception as error:  # noqa: BLE001 - the user's iterator may raise anything
                errors[row] = describe_error(error)
                continue
            rows += [row] * len(new_values)
            keys += new_keys
            values += new_values
        if errors:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
        self._emit_rows(chunk, rows, keys, values)

    def _expand(self, result: Any) -> tuple[list[Any], list[Any]]:
        if self._values_only:
            return [], plain_all(list(result))
        pairs = [(plain(key), plain(value)) for key, value in map(pair_of, result)]
        return [key for key, _ in pairs], [value for _, value in pairs]

    def _emit_rows(self, chunk: Chunk, rows: list[int], keys: list[Any], values: list[Any]) -> None:
        if not rows:
            return
        expanded = chunk.take(np.array(rows))
        fitted = self.fit(values, self._value)
        errors = fitted.errors
        result = expanded.with_value(fitted.column)
        if not self._values_only:
            fitted_keys = self.fit(keys, self._key)
            errors = {**errors, **fitted_keys.errors}
            result = result.with_key(fitted_keys.column)
        if errors:
            self.task.dead_letters.add(expanded, errors, self.name, Reason.ERROR)
        self.emit(self.drop(result, errors))


def without_null(column: Column, chunk: Chunk) -> Column:
    """Return the results of a function, with null where the value was null."""
    there = present(chunk.value)
    return column if there.all() else blank(column, there)


def without_parts(keys: Column, parts: tuple[int, ...], chunk: Chunk) -> Column:
    """Return keys with null in these parts where the record has no value."""
    there = present(chunk.value)
    if not parts or there.all():
        return keys
    if isinstance(keys, list) or not pa.types.is_struct(keys.type) or len(keys.type) == 0:
        return blank(keys, there)
    fields = [blank(keys.field(at), there) if at in parts else keys.field(at) for at in range(len(keys.type))]
    return pa.StructArray.from_arrays(fields, fields=list(keys.type), mask=keys.is_null())


def pairs_of(results: list[Any], errors: Errors) -> tuple[list[Any], list[Any]]:
    """Return the keys and values of the results of a function; a result that is not a pair is another error."""
    keys: list[Any] = []
    values: list[Any] = []
    for row, result in enumerate(results):
        key = value = None
        if row not in errors:
            try:
                key, value = pair_of(result)
            except TypeError as error:
                errors[row] = describe_error(error)
        keys.append(plain(key))
        values.append(plain(value))
    return keys, values


def pair_of(result: Any) -> tuple[Any, Any]:
    """Return the key and value of a result. Text and dicts of two items can be unpacked too, but are not pairs."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"expected a pair (key, value), got {result!r}"[:500])
    return result[0], result[1]


class Peek(Operator):
    """Call an action for each record, and pass the record on; a record whose action raises is a dead letter."""

    def __init__(self, name: str, task: Task, action: Function) -> None:
        super().__init__(name, task)
        self._action = action

    def process(self, chunk: Chunk) -> None:
        _, errors = call_python(self._action, chunk)
        self.emit(self.set_aside(chunk, errors))
