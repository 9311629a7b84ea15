"""Columns of SQL types as the case files write them: BYTES in BASE64, DECIMAL and times as text, maps as lists of
pairs, NULL as `{null = true}`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.sql.errors import UnknownName, closest
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_expression
from potok.sql.syntax.type_names import resolve

NULL_VALUE = {"null": True}


@dataclass(frozen=True)
class Columns:
    """A scope of columns by name."""

    types: Mapping[str, pa.DataType]
    custom_types: Mapping[str, pa.DataType] = field(default_factory=dict)

    def column(self, name: ast.Name) -> Typed:
        if name.name not in self.types:
            raise UnknownName(f"there is no column {name.name}", hint=closest(name.name, self.types), location=name.at)
        return ColumnRef(self.types[name.name], name.name)

    def call(self, _: ast.Call) -> Typed | None:
        return None


def type_of(text: str) -> pa.DataType:
    """The type that a statement would write like this."""
    cast = parse_expression(f"CAST(NULL AS {text})")
    assert isinstance(cast, ast.Cast)
    return resolve(cast.type, {})


def read(value: Any, type_: pa.DataType) -> Any:
    """A value of a case file as Arrow takes it."""
    if value == NULL_VALUE:
        return None
    if pa.types.is_list(type_):
        return [read(item, type_.value_type) for item in value]
    if pa.types.is_map(type_):
        return [(read(key, type_.key_type), read(item, type_.item_type)) for key, item in value]
    if pa.types.is_struct(type_):
        return {f.name: read(value.get(f.name, NULL_VALUE), f.type) for f in type_}
    return _read_scalar(value, type_)


def _read_scalar(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_decimal(type_):
        return Decimal(value)
    if pa.types.is_binary(type_):
        return base64.b64decode(value)
    if pa.types.is_floating(type_):
        return float(value)
    if pa.types.is_date(type_):
        return value if isinstance(value, date) else date.fromisoformat(value)
    if pa.types.is_time(type_):
        return value if isinstance(value, time) else time.fromisoformat(value)
    if pa.types.is_timestamp(type_):
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return value


def rendered(value: Any, type_: pa.DataType) -> Any:
    """A value for comparison with `read` of what is expected: maps without order, NaN equal to itself."""
    if value is None:
        return None
    if pa.types.is_list(type_):
        return [rendered(item, type_.value_type) for item in value]
    if pa.types.is_map(type_):
        return {repr(rendered(key, type_.key_type)): rendered(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {f.name: rendered(value[f.name], f.type) for f in type_}
    if pa.types.is_timestamp(type_):
        return value.astimezone(UTC).isoformat()
    return repr(value) if isinstance(value, float) else value


@dataclass(frozen=True)
class Answer:
    type: pa.DataType
    values: list[Any]
    failures: dict[int, str]
    expression: Typed


def answer(sql: str, columns: Sequence[tuple[str, str, list[Any]]] = (), *, now_ms: int = 0) -> Answer:
    """An expression checked and computed over columns, or over one row of none."""
    types = {name: type_of(written) for name, written, _ in columns}
    given = {name: pa.array([read(value, types[name]) for value in values], types[name]) for name, _, values in columns}
    rows = len(columns[0][2]) if columns else 1
    expression = check(parse_expression(sql), Columns(types))
    context = Context(now_ms=now_ms)
    found = compute(expression, given, rows, context)
    assert isinstance(found, pa.Array), "a computation gives an array"
    assert found.type == expression.type, "the type is what the check said"
    assert len(found) == rows
    found.validate(full=True)
    return Answer(found.type, found.to_pylist(), context.failures, expression)
