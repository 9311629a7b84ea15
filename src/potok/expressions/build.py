"""Typed constructors of expressions: each infers the type of Python's result, or refuses.

Refusing is always correct, because the step then runs as Python. So these rules accept an operation only if
Arrow can compute what Python computes, or can find cheaply the rows for which it may not (the evaluator's
suspects).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from potok.expressions.expr import Binary, Call, Column, Compare, Expr, Field, Item, Literal, Slice, Unary, walk
from potok.expressions.literals import as_type
from potok.expressions.python_types import DURATION, EXACT_FLOAT, NUMBERS, Family, family, python_name
from potok.expressions.tracing.refusal import InvertedBool, NotTraceable, UnknownField

ARITHMETIC: Final = ("+", "-", "*", "/", "//", "%", "**")
BITWISE: Final = ("&", "|", "^")
EQUALITY: Final = ("==", "!=")
ORDER: Final = ("<", "<=", ">", ">=")

LARGEST_POWER: Final = 16


def unary(op: str, operand: Expr) -> Expr:
    kind = family(operand.type)
    if op == "~" and kind == "bool":
        raise InvertedBool(str(operand))
    if kind in ("int", "bool"):
        return Unary(pa.int64(), op, operand)
    if kind == "float" and op != "~":
        return Unary(pa.float64(), op, operand)
    raise NotTraceable(f"{op} of {python_name(operand.type)} is not traced")


def binary(op: str, left: Expr, right: Expr) -> Expr:
    kinds = family(left.type), family(right.type)
    if kinds in (("string", "string"), ("binary", "binary")) and op == "+":
        return Binary(left.type, op, left, right)
    if kinds == ("timestamp", "timestamp") and op == "-" and left.type == right.type:
        return Binary(DURATION, op, left, right)
    if not NUMBERS.issuperset(kinds):
        raise NotTraceable(f"{python_name(left.type)} {op} {python_name(right.type)} is not traced")
    if op in BITWISE:
        return _bitwise(op, left, right, kinds)
    if op == "**":
        return _power(left, right)
    if op not in ARITHMETIC:
        raise NotTraceable(f"the operator {op} is not traced")
    if op in ("/", "//", "%") and isinstance(right, Literal) and right.value == 0:
        raise NotTraceable("it divides by zero")
    whole = "float" not in kinds and op != "/"
    return check_promotion(Binary(pa.int64() if whole else pa.float64(), op, left, right))


def _bitwise(op: str, left: Expr, right: Expr, kinds: tuple[Family, Family]) -> Expr:
    if "float" in kinds:
        raise NotTraceable(f"{op} of a float raises TypeError in Python; put parentheses around each comparison")
    return Binary(pa.bool_() if kinds == ("bool", "bool") else pa.int64(), op, left, right)


def _power(left: Expr, right: Expr) -> Expr:
    exponent = right.value if isinstance(right, Literal) else None
    if family(left.type) == "float" or type(exponent) is not int or not 0 <= exponent <= LARGEST_POWER:
        raise NotTraceable(
            f"** is traced only for an int and a constant exponent from 0 to {LARGEST_POWER}; write x * x"
        )
    return Binary(pa.int64(), "**", left, right)


def compare(op: str, left: Expr, right: Expr) -> Expr:
    if op in ORDER and "null" in (family(left.type), family(right.type)):
        raise NotTraceable(f"{op} with None raises TypeError in Python")
    if _comparable(op, left, right):
        return Compare(pa.bool_(), op, left, right)
    if family(left.type) == "decimal" and (exact := as_type(right, left.type)) is not None:
        return Compare(pa.bool_(), op, left, exact)
    if family(right.type) == "decimal" and (exact := as_type(left, right.type)) is not None:
        return Compare(pa.bool_(), op, exact, right)
    raise NotTraceable(f"{python_name(left.type)} {op} {python_name(right.type)} is not traced")


# Values of these families are equal only to values of the same family, so `==` with another one is False for
# every row.
_APART: Final[frozenset[Family]] = frozenset({"string", "binary", "duration"})
_ORDERED: Final[frozenset[Family]] = frozenset({"string", "binary", "date", "time", "timestamp", "duration", "decimal"})
_SIMPLE: Final = _ORDERED | NUMBERS


def _comparable(op: str, left: Expr, right: Expr) -> bool:
    kinds = family(left.type), family(right.type)
    if op in EQUALITY:
        if "null" in kinds:
            return True
        if kinds[0] != kinds[1] and _SIMPLE.issuperset(kinds) and not _APART.isdisjoint(kinds):
            return True
    if NUMBERS.issuperset(kinds):
        return True
    return kinds[0] in _ORDERED and left.type == right.type


def field(operand: Expr, name: str) -> Expr:
    """`operand["name"]` or `operand.name` of a struct."""
    index = operand.type.get_field_index(name) if family(operand.type) == "struct" else -1
    if index < 0:
        known = [field.name for field in operand.type] if family(operand.type) == "struct" else None
        raise UnknownField(name, _described(operand), known)
    type_ = operand.type.field(index).type
    if isinstance(operand, Column):
        return Column(type_, operand.name, (*operand.path, name))
    return Field(type_, operand, name)


def _described(operand: Expr) -> str:
    what = f"the {operand}" if isinstance(operand, Column) and not operand.path else str(operand)
    return what if family(operand.type) == "struct" else f"{what} ({python_name(operand.type)})"


def item(operand: Expr, key: object) -> Expr:
    """`operand[key]` for every kind of operand."""
    kind = family(operand.type)
    if isinstance(key, slice):
        return _slice(operand, key)
    if kind == "map" and type(key) is str and family(operand.type.key_type) == "string":
        return Item(operand.type.item_type, operand, key)
    if type(key) is str and kind != "other":
        return field(operand, key)
    if type(key) is int and -(2**31) <= key < 2**31:
        if kind == "list":
            return Item(operand.type.value_type, operand, key)
        if kind == "string":
            return Item(operand.type, operand, key)
    raise NotTraceable(
        f"{python_name(operand.type)}[{type(key).__name__}] is not traced; only a constant index or name is"
    )


def _slice(operand: Expr, bounds: slice) -> Expr:
    limits = (bounds.start, bounds.stop)
    if family(operand.type) != "string" or bounds.step not in (None, 1):
        raise NotTraceable(f"a slice of {python_name(operand.type)} with these bounds is not traced")
    if not all(limit is None or (type(limit) is int and abs(limit) < 2**31) for limit in limits):
        raise NotTraceable("a slice is traced only with constant bounds")
    return Slice(operand.type, operand, *limits)


_CHOICES: Final = ("when", "coalesce", "least", "greatest", "absolute")


def check_promotion(expr: Binary) -> Binary:
    """Refuse arithmetic in which Python may compute with ints that the column rounds.

    In `coalesce(v["amount"], 0)` the column is of floats, but Python's 0 is an int, and ints are added and multiplied
    exactly where floats round. As long as such an int is small, the float is equal to it; `_bound` computes how large
    it can be.
    """
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
