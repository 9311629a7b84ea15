"""Derive from a condition which values of a column to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.sql.expressions import nodes
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of, walk
from potok.sql.functions.function import Context, ScalarFunction
from potok.sql.functions.registry import function_named

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a column may have: `values` if they can be enumerated, without duplicates and in the order of the
    condition, else those from `low` to `high`, inclusive, that start with `prefix`. May allow more than the condition
    does, never less."""

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    prefix: str = ""

    def and_(self, other: Allowed) -> Allowed:
        if self.values is not None and other.values is not None:
            others = set(other.values)
            return Allowed(tuple(value for value in self.values if value in others))
        if self.values is not None or other.values is not None:
            return self if self.values is not None else other
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Allowed(None, max(lows, default=None), min(highs, default=None), self.prefix or other.prefix)

    def or_(self, other: Allowed) -> Allowed | None:
        if self.values is None or other.values is None:
            return None
        return Allowed(tuple(dict.fromkeys((*self.values, *other.values))))


def allowed_by(condition: Typed) -> dict[str, Allowed]:
    """Return the allowed values of each slot that a condition restricts."""
    match condition:
        case nodes.Logic(op="AND"):
            found = allowed_by(condition.left)
            for slot, other in allowed_by(condition.right).items():
                found[slot] = found[slot].and_(other) if slot in found else other
            return found
        case nodes.Logic(op="OR"):
            return _either(allowed_by(condition.left), allowed_by(condition.right))
        case nodes.Compare() if condition.op in _FLIPPED:
            return _compared(condition)
        case nodes.Listed(negated=False, operand=ColumnRef()) if all(map(_is_constant, condition.items)):
            values = [_value(item) for item in condition.items]
            return _slot(condition.operand, tuple(dict.fromkeys(value for value in values if value is not None)))
        case nodes.Ranged(negated=False, operand=ColumnRef()):
            if _is_constant(condition.low) and _is_constant(condition.high):
                low, high = _value(condition.low), _value(condition.high)
                return _between(condition.operand, low, high)
        case nodes.Matches(negated=False, operand=ColumnRef()) if _is_constant(condition.pattern):
            return _like(condition.operand, _value(condition.pattern), condition.escape)
    return {}


def _either(left: Mapping[str, Allowed], right: Mapping[str, Allowed]) -> dict[str, Allowed]:
    found = {slot: left[slot].or_(right[slot]) for slot in left.keys() & right.keys()}
    return {slot: allowed for slot, allowed in found.items() if allowed is not None}


def _compared(condition: nodes.Compare) -> dict[str, Allowed]:
    op, column, other = condition.op, condition.left, condition.right
    if not isinstance(column, ColumnRef):
        op, column, other = _FLIPPED[op], other, column
    if not isinstance(column, ColumnRef) or not _is_constant(other):
        return {}
    value = _value(other)
    if op == "=":
        return _slot(column, () if value is None else (value,))
    return _between(column, value if op[0] == ">" else None, value if op[0] == "<" else None, missing=value is None)


def _between(column: Typed, low: Any, high: Any, *, missing: bool | None = None) -> dict[str, Allowed]:
    assert isinstance(column, ColumnRef)
    if missing or (missing is None and (low is None or high is None)):
        # Nothing equals NULL.
        return {column.column: Allowed(())}
    return {column.column: Allowed(None, low, high)}


def _slot(column: Typed, values: tuple[Any, ...]) -> dict[str, Allowed]:
    assert isinstance(column, ColumnRef)
    return {column.column: Allowed(values)}


def _like(column: Typed, pattern: Any, escape: str) -> dict[str, Allowed]:
    assert isinstance(column, ColumnRef)
    if pattern is None or escape:
        return {}
    ends = [index for index in (pattern.find("%"), pattern.find("_")) if index >= 0]
    if not ends:
        return {column.column: Allowed((pattern,))}
    prefix = pattern[: min(ends)]
    return {column.column: Allowed(prefix=prefix)} if prefix else {}


def _is_constant(expression: Typed) -> bool:
    """Return whether an expression is constant and repeatable. Lists and structs are not hashable and cannot be looked
    up."""
    if columns_of(expression) or pa.types.is_nested(expression.type):
        return False
    for part in walk(expression):
        if isinstance(part, nodes.FunctionCall):
            function = function_named(part.name)
            if not isinstance(function, ScalarFunction) or not function.deterministic or not part.arguments:
                return False
    return not pa.types.is_temporal(expression.type) or _is_in_calendar(expression)


def _is_in_calendar(expression: Typed) -> bool:
    """Return whether Python can represent a date or timestamp; others are compared row by row."""
    try:
        _value(expression)
    except (ValueError, OverflowError):
        return False
    return True


def _value(expression: Typed) -> Any:
    return compute(expression, {}, 1, Context())[0].as_py()
