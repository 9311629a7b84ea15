"""Call the user's functions on a chunk: as Arrow compute if they were traced, as Python otherwise."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.errors import Location
from potok.events.event_type import TYPE_FIELD, event_name
from potok.expressions.evaluate import Evaluated, evaluate
from potok.expressions.expr import Expr
from potok.expressions.failures import FailureLog
from potok.expressions.function import Function
from potok.expressions.truth import truthy
from potok.operators.core.chunk import Chunk, Column, position_of
from potok.operators.core.function_usage import fields_read, only_looks_up
from potok.records.declared_class import class_of
from potok.records.record import Record
from potok.records.rows import rows_of
from potok.records.value import Value

Errors = dict[int, str]


@dataclass(slots=True)
class Called:
    """The results of a function, row by row; the rows in `errors` raised and have no result."""

    column: Column
    errors: Errors


def python_rows(column: Column, function: Function | None = None) -> list[Any]:
    """Convert a column to what a user's function sees: fields by item and by attribute.

    A dynamic value is copied, unless the function neither uses attributes nor could change the value that other steps
    see.
    """
    if not isinstance(column, list):
        return rows_of(column)
    if function is not None and only_looks_up(function.callable):
        return column
    return [Value(item) if type(item) is dict else item for item in column]


def describe_error(error: BaseException) -> str:
    """Describe an error, with the line of the user's program that raised it."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error of the user's own may answer anything
        text = ""
    described = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return described + _raised_at(error)


def _raised_at(error: BaseException) -> str:
    """Return the innermost line that belongs neither to Potok nor to an installed package."""
    line, trace = "", error.__traceback__
    while trace is not None:
        line = _line_of_user(trace.tb_frame.f_code.co_filename, trace.tb_lineno) or line
        trace = trace.tb_next
    return line


_INSTALLED = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
_NOT_THE_USERS = tuple(os.path.realpath(line) + os.sep for line in (str(Path(__file__).parents[2]), *_INSTALLED))


@lru_cache(maxsize=1_000)
def _line_of_user(file: str, number: int) -> str:
    """Return a line of a program as text; "" if it is not the user's. Many records may fail at one line."""
    # Cython names its files by its own paths.
    if file.endswith((".pyx", ".pxi")) or os.path.realpath(file).startswith(_NOT_THE_USERS):
        return ""
    line = linecache.getline(file, number).strip()
    return f", at {Location(file, number)}" + (f": {line}" if line else "")


def call_python(function: Function, chunk: Chunk, rows: npt.NDArray[np.intp] | None = None) -> tuple[list[Any], Errors]:
    """Call a function of (value) or (key, value) for each record, or for some."""
    key, value = chunk.key, chunk.value
    if rows is not None:
        part = chunk.take(rows)
        key, value = part.key, part.value
    values = _argument(value, function, function.arity - 1)
    if function.arity == 1:
        return call_each(function.callable, values)
    return call_each_pair(function.callable, _argument(key, function, 0), values)


def _argument(column: Column, function: Function, position: int) -> list[Any]:
    """Convert a column to an argument; of typed values only the fields that the function reads."""
    if isinstance(column, list):
        return python_rows(column, function)
    return rows_of(column, fields_read(function.callable, position))


def call_each(function: Callable[..., Any], values: list[Any]) -> tuple[list[Any], Errors]:
    return _call_all(function, len(values), iter(values))


def call_each_pair(function: Callable[..., Any], keys: list[Any], values: list[Any]) -> tuple[list[Any], Errors]:
    return _call_all(function, len(values), iter(keys), iter(values))


def _call_all(function: Callable[..., Any], count: int, *arguments: Iterator[Any]) -> tuple[list[Any], Errors]:
    """Call the function for all rows. On a failure the results so far stay in the list, and the iterators are past
    the row that failed.
    """
    results: list[Any] = []
    errors: Errors = {}
    while len(results) < count:
        try:
            results.extend(map(function, *arguments))
            if len(results) < count:
                # It ended the loop instead of raising in it.
                raise StopIteration
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            errors[len(results)] = describe_error(error)
            results.append(None)
    return results, errors


_PLAIN = frozenset((dict, list, str, int, float, bool, tuple, bytes, type(None)))


def plain(value: Any) -> Any:
    """Convert the result of a function to data that any process can read."""
    if type(value) in _PLAIN:
        return value
    if type(value) is Value:
        return dict(value)
    if isinstance(value, Value):
        return _with_event_type(value, dict(value))
    if is_dataclass(value) and not isinstance(value, type):
        return _with_event_type(value, _fields(value))
    return value.item() if isinstance(value, np.generic) else value


def _fields(value: Any) -> Any:
    """Convert a dataclass or a `Record` to a dict. One that holds values that cannot be copied is not data, and is
    left as it is for the next step to reject.
    """
    try:
        return value.asdict() if isinstance(value, Record) else asdict(value)
    except Exception:  # noqa: BLE001 - copying an object may run code of the user's
        return value


def _with_event_type(value: Any, fields: Any) -> Any:
    """Add the event type of an instance of an event class, which is not data by itself."""
    name = event_name(value)
    return fields if name is None or not isinstance(fields, dict) else {TYPE_FIELD: name, **fields}


def must_fit(value: Any, type_: pa.DataType) -> None:
    """Raise if a result does not have the type of its step: a sum of integers may exceed 64 bits."""
    data = plain(value)
    if isinstance(data, dict) and class_of(type_) is not None and data.keys() != {field.name for field in type_}:
        raise ValueError(f"the result {value!r} does not have exactly the fields {', '.join(type_.names)} of this step")
    try:
        pa.scalar(data, type_)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the result {value!r} does not fit the type {type_} of this step") from error


def plain_all(values: list[Any]) -> list[Any]:
    return values if _PLAIN.issuperset(map(type, values)) else [plain(value) for value in values]


def typed_columns(chunk: Chunk) -> Mapping[str, pa.Array]:
    return {
        name: column for name, column in (("key", chunk.key), ("value", chunk.value)) if not isinstance(column, list)
    }


def evaluated(expr: Expr, chunk: Chunk, log: FailureLog | None) -> Evaluated:
    """Evaluate an expression over a chunk. Failures are added to `log` with their positions; without one, the
    expression is evaluated again and its failures have been reported.
    """
    result = evaluate(expr, typed_columns(chunk), len(chunk))
    if log is not None and result.failures:
        log.add(result.failures, lambda row: position_of(chunk, row))
    return result


def call_traced(expr: Expr, function: Function, chunk: Chunk, log: FailureLog | None) -> Called:
    """Use Arrow compute for all rows; where it might differ from Python, call the function itself."""
    result = evaluated(expr, chunk, log)
    rows = _suspects(result)
    if not len(rows):
        return Called(result.column, {})
    values, errors = call_python(function, chunk, rows)
    column, misfits = patch(result.column, rows, plain_all(values))
    return Called(column, {**{int(rows[i]): text for i, text in errors.items()}, **misfits})


def _suspects(result: Evaluated) -> npt.NDArray[np.intp]:
    """Return the rows for which Arrow's result might differ from Python's."""
    if result.suspect is None:
        return np.empty(0, np.intp)
    return np.flatnonzero(result.suspect.to_numpy(zero_copy_only=False))


def patch(column: pa.Array, rows: npt.NDArray[np.intp], values: list[Any]) -> tuple[pa.Array, Errors]:
    """Replace some rows of a column; a replacement that does not fit its type is an error of that row."""
    errors: Errors = {}
    if pa.types.is_struct(column.type):
        values = [_as_struct(value, column.type) for value in values]
    try:
        replacement = pa.array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        items: list[Any] = []
        for row, value in zip(rows, values, strict=True):
            try:
                items.append(pa.scalar(value, column.type).as_py())
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                errors[int(row)] = f"the result {value!r} does not fit the type {column.type} of this step"
                items.append(None)
        replacement = pa.array(items, column.type)
    indices = np.arange(len(column))
    indices[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, replacement]).take(pa.array(indices)), errors


def _as_struct(value: Any, type_: pa.DataType) -> Any:
    """Convert a pair that a function returned to the struct of a traced pair."""
    if isinstance(value, tuple) and len(value) == type_.num_fields:
        return {type_.field(index).name: plain(item) for index, item in enumerate(value)}
    return value


def truth(
    expr: Expr | None, function: Function, chunk: Chunk, log: FailureLog | None
) -> tuple[npt.NDArray[np.bool_], Errors]:
    """Return which records satisfy a predicate, by Python's rules of truth."""
    if expr is not None:
        result = evaluated(expr, chunk, log)
        mask = np.array(truthy(result.column).to_numpy(zero_copy_only=False), np.bool_)
        rows = _suspects(result)
        if not len(rows):
            return mask, {}
        mask[rows], errors = _truth_of(*call_python(function, chunk, rows))
        return mask, {int(rows[row]): text for row, text in errors.items()}
    return _truth_of(*call_python(function, chunk))


def _truth_of(results: list[Any], errors: Errors) -> tuple[npt.NDArray[np.bool_], Errors]:
    if not errors and set(map(type, results)) == {bool}:
        return np.array(results, np.bool_), errors
    answers, unclear = call_each(bool, results)
    return np.array([answer is True for answer in answers], np.bool_), {**unclear, **errors}
