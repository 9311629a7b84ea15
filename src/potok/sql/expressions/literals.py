"""Literals and their implicit conversions, which depend on their values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from potok.sql.errors import SqlTypeError
from potok.sql.expressions.compute import compute
from potok.sql.expressions.conversions.casts import can_cast
from potok.sql.expressions.conversions.parse_text import BLANKS, is_boolean, parser, parses
from potok.sql.expressions.conversions.show_text import show_value
from potok.sql.expressions.nodes import Arithmetic, CastTo, Constant, MakeArray, MakeMap, MakeStruct, Negate
from potok.sql.expressions.typed import Typed
from potok.sql.expressions.unify import common, implicit
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    NULL,
    TIME,
    TIMESTAMP,
    VARCHAR,
    decimal,
    is_number,
    type_name,
)

_FROM_TEXT = (DATE, TIME, TIMESTAMP, BYTES)
_FOLDED = (Arithmetic, Negate, CastTo)


def literal(node: ast.Literal) -> Constant:
    return constant(node.value, node)


def constant(value: bool | int | Decimal | float | str | None, node: ast.Node) -> Constant:
    """Return a constant with the type of its literal: `1` is INTEGER, `3000000000` BIGINT, `1.5` DECIMAL(2, 1)."""
    match value:
        case None:
            return Constant(NULL, None)
        case bool():
            return Constant(BOOLEAN, value)
        case str():
            return Constant(VARCHAR, value)
        case float():
            return Constant(DOUBLE, value)
        case int():
            return Constant(_whole_type(value, node), value)
        case Decimal():
            return Constant(_decimal_type(value, node), value)


def _whole_type(value: int, node: ast.Node) -> pa.DataType:
    if -(2**31) <= value < 2**31:
        return INT
    if -(2**63) <= value < 2**63:
        return BIGINT
    hint = f"write {value}.0 for a DECIMAL"
    raise SqlTypeError(f"{value} is too large for BIGINT", hint=hint, location=node.at)


def _size(value: Decimal) -> tuple[int, int]:
    """Return how many digits a finite number has, and how many of them are after the decimal point."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return max(len(digits) + max(0, int(exponent)), scale, 1), scale


def _decimal_type(value: Decimal, node: ast.Node) -> pa.DataType:
    precision, scale = _size(value)
    if precision > MAX_PRECISION:
        hint = f"a DECIMAL has {MAX_PRECISION} digits at most; write an exponent (1.5E0) for a DOUBLE"
        raise SqlTypeError(f"{value:f} has too many digits", hint=hint, location=node.at)
    return decimal(precision, scale)


def fold(expression: Typed) -> Typed:
    """Fold an operation on constants, unless it fails or is NULL; then it is evaluated at run time."""
    if not isinstance(expression, _FOLDED) or not all(isinstance(part, Constant) for part in expression.children):
        return expression
    context = Context()
    found = compute(expression, {}, 1, context)
    if context.failures or not found[0].is_valid:
        return expression
    try:
        return Constant(expression.type, found[0].as_py())
    except (ValueError, OverflowError):
        # A date outside of Python's calendar.
        return expression


def coerced(value: Constant, to: pa.DataType, *, lax: bool = False) -> Constant | None:
    """Convert a constant to another type if that is lossless: a string to a date, a time or BYTES; with `lax` also to a
    number or a boolean, and these to strings. Raises ValueError for an invalid string."""
    if value.type == to or value.value is None:
        return Constant(to, value.value)
    if implicit(value.type, to):
        found = fold(CastTo(to, value))
        return found if isinstance(found, Constant) else None
    if value.type == VARCHAR and parses(to) and (to in _FROM_TEXT or lax):
        return _parsed(value.value, to)
    if pa.types.is_decimal(to) and not pa.types.is_floating(value.type) and is_number(value.type):
        return _exactly(Decimal(value.value), to)
    if lax and to == VARCHAR and not pa.types.is_nested(value.type) and value.type != BYTES:
        return Constant(VARCHAR, show_value(value.value, value.type))
    return None


def _parsed(text: str, to: pa.DataType) -> Constant:
    if to == BOOLEAN and not is_boolean(text):
        raise ValueError(f"'{text}' is not a valid BOOLEAN")
    found: Any = parser(to)(text.strip(BLANKS))
    if pa.types.is_decimal(to) and found != Decimal(text.strip(BLANKS)):
        raise ValueError(f"'{text}' has too many digits for {type_name(to)}")
    return Constant(to, found)


def _exactly(value: Decimal, to: pa.DataType) -> Constant | None:
    whole = to.precision - to.scale
    places = -int(value.normalize().as_tuple().exponent)
    return Constant(to, value) if abs(value) < Decimal(10) ** whole and places <= to.scale else None


def implied(expression: Typed, to: pa.DataType, node: ast.Node) -> Typed:
    """Cast an expression implicitly; SqlTypeError if that is not allowed."""
    if expression.type == to:
        return expression
    if isinstance(expression, Constant):
        try:
            found = coerced(expression, to)
        except ValueError as error:
            raise SqlTypeError(str(error), location=node.at) from None
        if found is not None:
            return found
    elif implicit(expression.type, to):
        return fold(CastTo(to, expression))
    hint = f"write CAST({expression} AS {type_name(to)})"
    if not can_cast(expression.type, to):
        hint = "write a comparison" if to == BOOLEAN else f"pass a value of type {type_name(to)}"
    raise SqlTypeError(
        f"{expression} is {type_name(expression.type)}, but {type_name(to)} is expected", hint=hint, location=node.at
    )


def numeric_type(text: str) -> pa.DataType | None:
    """Return the type of the number in a string: an integer type, or the DECIMAL with its digits.

    As in ksqlDB, the smallest and the largest INT are BIGINT, and those of BIGINT are DECIMAL.
    """
    try:
        value = Decimal(text.strip(BLANKS))
    except InvalidOperation:
        return None
    if not value.is_finite() or "_" in text:
        return None
    if not any(char in text for char in ".eE") and -(2**63) < value < 2**63 - 1:
        return INT if -(2**31) < value < 2**31 - 1 else BIGINT
    precision, scale = _size(value)
    return decimal(precision, scale) if precision <= MAX_PRECISION else DOUBLE


def meeting(target: pa.DataType, expression: Typed) -> pa.DataType | None:
    """Return the common type of the values so far and this one. Literals take the type of the others if possible: in a
    list of numbers, '2' is a number. This includes literals inside array, map and struct constructors."""
    if target == NULL:
        return expression.type
    match expression:
        case Constant(type=_, value=None):
            return target
        case Constant() if expression.type == VARCHAR and is_number(target):
            number = numeric_type(expression.value)
            return None if number is None else common([target, number])
        case Constant() if expression.type == VARCHAR and (target in _FROM_TEXT or target == BOOLEAN):
            return target
        case Constant() if target == VARCHAR and not pa.types.is_nested(expression.type) and expression.type != BYTES:
            return VARCHAR
        case MakeArray(items=items) if pa.types.is_list(target):
            item = _meeting_all(target.value_type, items)
            return None if item is None else pa.list_(item)
        case MakeMap(items=items) if pa.types.is_map(target):
            key = _meeting_all(target.key_type, [key for key, _ in items])
            item = _meeting_all(target.item_type, [item for _, item in items])
            return None if key is None or item is None else pa.map_(key, item)
        case MakeStruct(items=items) if pa.types.is_struct(target):
            fields = {field.name: field.type for field in target}
            for field, item in zip(expression.type, items, strict=True):
                fields[field.name] = meeting(fields.get(field.name, NULL), item)
            return None if None in fields.values() else pa.struct(list(fields.items()))
    return common([target, expression.type])


def _meeting_all(target: pa.DataType, parts: Sequence[Typed]) -> pa.DataType | None:
    for part in parts:
        found = meeting(target, part)
        if found is None:
            return None
        target = found
    return target


def as_target(expression: Typed, to: pa.DataType, node: ast.Node) -> Typed:
    """Convert an expression to the common type that `meeting` found."""
    match expression:
        case Constant():
            try:
                found = coerced(expression, to, lax=True)
            except ValueError as error:
                raise SqlTypeError(str(error), location=node.at) from None
            if found is not None:
                return found
        case MakeArray(items=items) if pa.types.is_list(to):
            return MakeArray(to, tuple(as_target(item, to.value_type, node) for item in items))
        case MakeMap(items=pairs) if pa.types.is_map(to):
            return MakeMap(
                to,
                tuple((as_target(key, to.key_type, node), as_target(item, to.item_type, node)) for key, item in pairs),
            )
        case MakeStruct(items=items) if pa.types.is_struct(to):
            given = dict(zip((field.name for field in expression.type), items, strict=True))
            return MakeStruct(
                to,
                tuple(
                    as_target(given[field.name], field.type, node)
                    if field.name in given
                    else Constant(field.type, None)
                    for field in to
                ),
            )
    return implied(expression, to, node)
