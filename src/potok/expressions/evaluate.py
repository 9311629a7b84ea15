"""Evaluate an expression over columns with Arrow compute, and return the rows whose result may differ from
Python's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.computed import Computed
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
from potok.expressions.failures import RowFailures
from potok.expressions.operations.registry import OPERATIONS
from potok.expressions.python_types import NUMBERS, family
from potok.expressions.vectorised import access, comparisons, numbers
from potok.expressions.vectorised.vector import Mask, Vector, as_array, cast, either, required


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A column, and the rows in which it may differ from Python's result.

    The value of a suspect row is undefined: the caller runs the user's function on it instead, which may also
    raise. Every other row is exact, and null is None.
    """

    column: pa.Array
    suspect: Mask
    failures: RowFailures = field(default_factory=dict)
    """The rows that are null because something in them could not be computed."""


def evaluate(expr: Expr, columns: Mapping[str, pa.Array], rows: int) -> Evaluated:
    """Evaluate over `rows` rows; `columns` holds an array for every argument that the expression reads."""
    failures: RowFailures = {}
    vector = _Evaluation(columns, rows, failures).vector(expr)
    suspect = vector.suspect
    if suspect is not None and not pc.any(suspect).as_py():
        suspect = None
    return Evaluated(cast(as_array(vector.data, rows), expr.type), suspect, failures)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    columns: Mapping[str, pa.Array]
    rows: int
    failures: RowFailures

    def vector(self, expr: Expr) -> Vector:
        match expr:
            case Column():
                return access.column(expr, self.columns)
            case Literal():
                return Vector(pa.scalar(expr.value, expr.type))
            case Compare():
                return comparisons.compare(expr.op, self.vector(expr.left), self.vector(expr.right))
            case Binary():
                return _binary(expr, self.vector(expr.left), self.vector(expr.right))
            case Unary():
                return _unary(expr, self.vector(expr.operand))
            case Call():
                operation = OPERATIONS[expr.style, expr.name]
                return operation.vector([self.vector(arg) for arg in expr.args], expr)
            case Computed():
                args = [as_array(self.vector(arg).data, self.rows) for arg in expr.args]
                return Vector(expr.compute(args, self.rows, self.failures))
            case Field():
                return access.field(self.vector(expr.operand), expr.name)
            case Item():
                return _item(expr, self.vector(expr.operand))
            case Slice():
                return access.substring(self.vector(expr.operand), expr.start, expr.stop)
            case StructExpr() | TupleExpr():
                return access.struct([self.vector(child) for child in expr.children], expr.type, self.rows)
            case ListExpr():
                return access.list_of([self.vector(child) for child in expr.items], expr.type, self.rows)
        raise TypeError(f"no evaluation for {type(expr).__name__}")


def _binary(expr: Binary, left: Vector, right: Vector) -> Vector:
    if family(expr.left.type) in NUMBERS:
        return numbers.arithmetic(expr.op, left, right, expr.type)
    suspect = required(left, right)
    if family(expr.left.type) == "timestamp":
        off = either(comparisons.off_calendar(left.data), comparisons.off_calendar(right.data))
        return Vector(pc.subtract(left.data, right.data), either(suspect, off))
    empty = pa.scalar("" if expr.type == pa.string() else b"", expr.type)
    return Vector(pc.binary_join_element_wise(left.data, right.data, empty), suspect)


def _unary(expr: Unary, operand: Vector) -> Vector:
    if expr.op == "-":
        return numbers.negate(operand, expr.type)
    data = cast(operand.data, expr.type)
    return Vector(pc.bit_wise_not(data) if expr.op == "~" else data, required(operand))


def _item(expr: Item, operand: Vector) -> Vector:
    if isinstance(expr.index, str):
        return access.entry(operand, expr.index)
    if family(expr.operand.type) == "list":
        return access.element(operand, expr.index)
    return access.character(operand, expr.index)
