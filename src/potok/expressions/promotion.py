"""Floats that Python may hold as ints.

In `coalesce(v["amount"], 0)` the column is of floats, but Python's 0 is an int, and ints are added and
multiplied exactly where floats round. As long as such an int is small, the float is equal to it; this module
computes how large it can be.
"""

from __future__ import annotations

from typing import Final

from potok.expressions.expr import Binary, Call, Expr, Field, Item, Literal, Unary, walk
from potok.expressions.python_types import EXACT_FLOAT, family
from potok.expressions.tracing.refusal import NotTraceable

_CHOICES: Final = ("when", "coalesce", "least", "greatest", "absolute")


def check_promotion(expr: Binary) -> Binary:
    """Refuse arithmetic in which Python may compute with ints that the column rounds."""
    if _bound(expr.left) is None and _bound(expr.right) is None:
        return expr
    for side in (expr.left, expr.right):
        if family(side.type) != "float" and not isinstance(side, Literal):
            raise NotTraceable("it computes with ints, and with an int in place of a missing float; write 0.0 for 0")
        if (_alternative(side) or 0) > EXACT_FLOAT or (_bound(expr) or 0) > EXACT_FLOAT:
            raise NotTraceable("it computes with large ints in place of floats; write them as floats")
    return expr


def _bound(expr: Expr) -> int | None:
    """Return a bound of the int that Python may have where the column has a float; None if Python has a float
    too.
    """
    match expr:
        case Call(name=name, args=args) if family(expr.type) == "float" and name in _CHOICES:
            return _largest(*(_alternative(arg) for arg in (args[1:] if name == "when" else args)))
        case Call(name="get", options=(_, default)) if family(expr.type) == "float" and isinstance(default, int):
            return abs(default)
        case Unary(operand=operand) if family(expr.type) == "float":
            return _bound(operand)
        case Item(operand=operand) | Field(operand=operand):
            return _largest(*map(_bound, walk(operand)))
        case Binary(op=op, left=left, right=right) if family(expr.type) == "float" and op != "/":
            return _combined(op, _alternative(left), _alternative(right))
    return None


def _alternative(expr: Expr) -> int | None:
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return abs(expr.value)
    return _bound(expr)


def _combined(op: str, left: int | None, right: int | None) -> int | None:
    """With a true float on either side, the result is a float."""
    if left is None or right is None:
        return None
    return {"*": left * right, "//": left, "%": right}.get(op, left + right)


def _largest(*bounds: int | None) -> int | None:
    return max((bound for bound in bounds if bound is not None), default=None)
