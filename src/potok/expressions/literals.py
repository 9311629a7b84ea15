"""Convert Python constants to typed literals, and literals to the type of their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final

import pyarrow as pa

from potok.expressions.expr import Expr, Literal
from potok.expressions.python_types import (
    DURATION,
    EXACT_FLOAT,
    INSTANT,
    INT64_MAX,
    INT64_MIN,
    LOCAL,
    TIME,
    family,
    python_name,
    widest,
)
from potok.expressions.tracing.refusal import NotTraceable

CONSTANTS: Final = frozenset({bool, int, float, str, bytes, type(None), date, time, datetime, timedelta, Decimal})
"""Immutable types, compared exactly: a subclass may redefine its operators."""


def is_constant(value: object) -> bool:
    """Whether the value is deeply immutable, so that it may become part of an expression."""
    if type(value) in (tuple, frozenset):
        return isinstance(value, Iterable) and all(is_constant(part) for part in value)
    return type(value) in CONSTANTS


def literal(value: object) -> Literal:
    """Return a constant with the Arrow type of its Python type."""
    if type(value) not in CONSTANTS:
        raise NotTraceable(f"a {type(value).__name__} is not traced")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = _in_utc(value)
    return Literal(_type_of(value), value)


def _in_utc(value: datetime) -> datetime:
    # In a zone with daylight saving time, Python compares some instants as unequal to any instant of another
    # zone.
    if type(value.tzinfo) is not timezone:
        raise NotTraceable("a datetime constant is traced only in UTC or with a fixed offset")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise NotTraceable(f"the constant {value!r} is not traced") from error


def _type_of(value: object) -> pa.DataType:
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise NotTraceable(f"the int {value} needs more than 64 bits")
            return pa.int64()
        case float():
            return pa.float64()
        case str():
            if any("\ud800" <= char <= "\udfff" for char in value):
                raise NotTraceable("the text is not valid Unicode")
            return pa.string()
        case bytes():
            return pa.binary()
        case datetime():
            return LOCAL if value.tzinfo is None else INSTANT
        case date():
            return pa.date32()
        case time() if value.tzinfo is None and value.microsecond % 1000 == 0:
            return TIME
        case timedelta():
            return DURATION
        case Decimal() if value.is_finite():
            return pa.scalar(value).type
    raise NotTraceable(f"the constant {value!r} is not traced")


def as_type(expr: Expr, type_: pa.DataType) -> Literal | None:
    """Return a literal as a literal of another type, if its value stays equal; None if it does not, or for other
    nodes.
    """
    if not isinstance(expr, Literal):
        return None
    value, target = expr.value, family(type_)
    if expr.type == type_ or value is None:
        return Literal(type_, value)
    if target == "float" and type(value) is int and abs(value) <= EXACT_FLOAT:
        return Literal(pa.float64(), float(value))
    if target == "decimal" and isinstance(value, int | Decimal) and type(value) is not bool:
        try:
            return Literal(type_, pa.scalar(Decimal(value), type_).as_py())
        except pa.ArrowInvalid:
            return None
    return None


def unify(exprs: Sequence[Expr]) -> tuple[pa.DataType, tuple[Expr, ...]]:
    """Return one type for alternatives, any of which may become the result.

    None takes the type of the others. An int constant next to floats becomes a float of equal value: the column
    holds floats, so Python's int would become one in it.
    """
    known = {widest(expr.type) for expr in exprs if family(expr.type) != "null"}
    if pa.float64() in known and all(isinstance(expr, Literal) for expr in exprs if family(expr.type) == "int"):
        known.discard(pa.int64())
    if not known:
        raise NotTraceable("None alone has no type")
    if len(known) > 1:
        names = " and ".join(sorted(python_name(type_) for type_ in known))
        raise NotTraceable(f"alternatives of different types ({names}) are not traced")
    type_ = known.pop()
    return type_, tuple(_fitted(expr, type_) for expr in exprs)


def _fitted(expr: Expr, type_: pa.DataType) -> Expr:
    if not isinstance(expr, Literal) or family(expr.type) == family(type_):
        return expr
    typed = as_type(expr, type_)
    if typed is None:
        raise NotTraceable(f"{expr} does not fit {python_name(type_)}")
    return typed
