"""A typed value with a field of every kind, and the comparison of a traced lambda with the lambda itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from potok.expressions import Argument, Expr, Traced, evaluate, evaluate_row, trace
from potok.expressions.expr import Call, walk
from potok.records.rows import rows_of

ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.int64())])
VALUE = pa.struct(
    [
        ("i", pa.int64()),
        ("j", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("b", pa.bool_()),
        ("c", pa.bool_()),
        ("raw", pa.binary()),
        ("d", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("hour", pa.time32("ms")),
        ("ints", pa.list_(pa.int64())),
        ("words", pa.list_(pa.string())),
        ("address", ADDRESS),
        ("people", pa.list_(pa.struct([("name", pa.string()), ("age", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("w", pa.map_(pa.string(), pa.float64())),
    ]
)
CHOICES = ("when", "coalesce", "least", "greatest", "get")
ARGUMENTS = (Argument("key", pa.string()), Argument("value", VALUE))


def traced(function: Callable[..., Any], *arguments: Argument) -> Expr:
    found = trace(function, arguments or ARGUMENTS)
    assert isinstance(found, Traced), found
    return found.expr


def assert_agrees(function: Callable[..., Any], keys: Sequence[Any], values: Sequence[Any], expr: Expr) -> list[int]:
    """Every row that is not suspect is what Python gives. Returns the suspect rows."""
    # The columns of a batch are often slices of larger ones.
    columns = {"key": _slice(keys, pa.string()), "value": _slice(values, VALUE)}
    evaluated = evaluate(expr, columns, len(keys))
    assert evaluated.column.type == expr.type
    assert len(evaluated.column) == len(keys)
    suspect = [False] * len(keys) if evaluated.suspect is None else evaluated.suspect.to_pylist()
    assert None not in suspect
    results = rows_of(evaluated.column)
    # Where an int stands in for a float, zero has no sign to compare.
    signed = not any(isinstance(node, Call) and node.name in CHOICES for node in walk(expr))
    for index, (key, value) in enumerate(zip(keys, rows_of(columns["value"]), strict=True)):
        row = {"key": key, "value": value}
        expected = outcome(function, key, value)
        if isinstance(expected, Exception):
            assert suspect[index], f"{row}: Python raises {expected!r}, native gives {results[index]!r}"
            assert isinstance(outcome(evaluate_row, expr, row), Exception)
            continue
        assert same(evaluate_row(expr, row), expected, signed), f"{row}: one row gives {evaluate_row(expr, row)!r}"
        if not suspect[index]:
            assert same(results[index], expected, signed), f"{row}: Python {expected!r}, native {results[index]!r}"
    return [index for index, doubtful in enumerate(suspect) if doubtful]


def _slice(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([*values[:2], *values, *values[:1]], type_).slice(min(2, len(values)), len(values))


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a call returns or raises."""
    try:
        return function(*args)
    except (TypeError, AttributeError, KeyError, IndexError, ZeroDivisionError, OverflowError) as error:
        return error


def same(found: Any, expected: Any, signed: bool = True) -> bool:
    """Equal in value and type, NaN to NaN; an int is taken for the float that a column of floats makes of it."""
    if isinstance(expected, tuple | list):
        # A tuple as a whole is a struct.
        parts = list(found.values()) if isinstance(found, dict) else found
        return len(parts) == len(expected) and all(same(*pair, signed) for pair in zip(parts, expected, strict=True))
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[name], expected[name], signed) for name in found)
    if type(found) is float and type(expected) is int:
        return found == expected
    if type(found) is not type(expected):
        return False
    if type(found) is float and (signed or math.isnan(found)):
        return repr(found) == repr(expected)
    return bool(found == expected)
