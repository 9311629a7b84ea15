"""Evaluate an expression on one row with Python's own operators, raising what Python raises."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from potok.expressions.computed import Computed, computed_row
from potok.expressions.expr import (
    Binary,
    Call,
    Column,
    Compare,
    Expr,
    Field,
    Item,
    ListExpr,
    Literal,
    Slice,
    StructExpr,
    TupleExpr,
    Unary,
)
from potok.expressions.functions import FUNCTIONS

_UNARY: Final[dict[str, Callable[[Any], Any]]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate_row(expr: Expr, row: Mapping[str, object]) -> Any:
    """Evaluate the expression on one row, given as Python values by argument name: structs and maps are dicts."""
    match expr:
        case Column():
            value: Any = row[expr.name]
            for name in expr.path:
                value = value[name]
            return value
        case Literal():
            return expr.value
        case Computed():
            return computed_row(expr, row)
        case Field():
            return evaluate_row(expr.operand, row)[expr.name]
        case Item():
            return evaluate_row(expr.operand, row)[expr.index]
        case Slice():
            return evaluate_row(expr.operand, row)[expr.start : expr.stop]
        case Unary():
            return _UNARY[expr.op](evaluate_row(expr.operand, row))
        case Binary() | Compare():
            return _BINARY[expr.op](evaluate_row(expr.left, row), evaluate_row(expr.right, row))
        case Call():
            return _call(expr, [evaluate_row(arg, row) for arg in expr.args])
        case StructExpr():
            return {name: evaluate_row(item, row) for name, item in expr.items}
        case ListExpr():
            return [evaluate_row(item, row) for item in expr.items]
        case TupleExpr():
            return tuple(evaluate_row(item, row) for item in expr.items)
    raise TypeError(f"no evaluation for {type(expr).__name__}")


def _call(expr: Call, args: list[Any]) -> Any:
    if expr.style == "function":
        return FUNCTIONS[expr.name](*args, *expr.options)
    member = getattr(args[0], expr.name)
    return member if expr.style == "attribute" else member(*args[1:], *expr.options)
