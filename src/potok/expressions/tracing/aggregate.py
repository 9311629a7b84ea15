"""Recognise aggregators that can be computed in parts and merged: sums, minima, maxima, and dicts of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from typing import Literal as OneOf

import pyarrow as pa

from potok.expressions.build import binary, unary
from potok.expressions.evaluate import Evaluated, evaluate
from potok.expressions.expr import Binary, Call, Column, Expr, StructExpr, walk
from potok.expressions.function import Function
from potok.expressions.functions import greatest, least
from potok.expressions.literals import literal
from potok.expressions.operations.registry import OPERATIONS
from potok.expressions.python_types import family
from potok.expressions.row import evaluate_row
from potok.expressions.tracing.refusal import NotTraceable, UnknownField
from potok.expressions.tracing.trace import Argument, Untraceable, trace
from potok.expressions.vectorised.vector import either, nulls

AGGREGATE: Final = "agg"

MergeOp = OneOf["sum", "min", "max", "same"]


class Absent(Enum):
    """The initial value of an aggregate without one."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """One number or field of an aggregate, as a fold of `term` over the records.

    `sum` adds; `min` and `max` take the least and the greatest, where null and NaN lose against anything else;
    `same` depends only on the key, so that every record of a group has the same value, which replaces the
    previous one.
    """

    path: tuple[str, ...]
    op: MergeOp
    term: Expr
    initial: object
    type: pa.DataType

    def evaluate(self, columns: Mapping[str, pa.Array], rows: int) -> Evaluated:
        """Return the contribution of each row, in the type of the aggregate. For suspect rows, call
        `contribution`.
        """
        result = evaluate(self.term, columns, rows)
        column = result.column.cast(self.type, safe=False)
        # Adding None raises in Python.
        suspect = either(result.suspect, nulls(column)) if self.op == "sum" else result.suspect
        return Evaluated(column, suspect, result.failures)

    def contribution(self, row: Mapping[str, object]) -> Any:
        """Return what one row adds, computed by Python; raise what the aggregator would raise on that row."""
        value = evaluate_row(self.term, row)
        if self.op == "sum":
            _ = 0 + value  # evaluated for its exception
        return value

    def merge(self, left: Any, right: Any) -> Any:
        """Merge two partial results; also the initial value, on the left, and a partial result."""
        if left is ABSENT:
            return right
        match self.op:
            case "sum":
                return left + right
            case "min":
                return least(left, right)
            case "max":
                return greatest(left, right)
            case "same":
                return right

    def __str__(self) -> str:
        return f"{self.op}({self.term})"


@dataclass(frozen=True, slots=True)
class TracedAggregate:
    """An aggregator that merges partial results, in any order."""

    terms: tuple[AggregateTerm, ...]
    type: pa.DataType

    def __str__(self) -> str:
        if self.terms[0].path == ():
            return str(self.terms[0])
        return "{" + ", ".join(f"{'.'.join(term.path)}: {term}" for term in self.terms) + "}"


def trace_aggregate(
    initial: object, aggregator: Function, key: pa.DataType | None, value: pa.DataType | None
) -> TracedAggregate | Untraceable:
    """Return an aggregator of `(k, v, agg)` or `(v, agg)` as terms to merge, or the reason why it cannot be
    traced.
    """
    try:
        return _trace(initial, aggregator, (Argument("key", key), Argument("value", value))[3 - aggregator.arity :])
    except NotTraceable as refusal:
        return Untraceable(refusal.reason)


def trace_reduce(reducer: Function, value: pa.DataType | None) -> TracedAggregate | Untraceable:
    """Trace a reducer of `(v1, v2)`, such as `v1 + v2`. It has no initial value: a key starts with its first
    value.
    """
    if value is None or family(value) == "struct":
        return Untraceable("a reducer is merged from parts only over numbers, texts or dates")
    try:
        return _trace(ABSENT, reducer, (Argument("value", value),), value)
    except NotTraceable as refusal:
        return Untraceable(refusal.reason)


def _trace(
    initial: object, function: Function, arguments: Sequence[Argument], start: pa.DataType | None = None
) -> TracedAggregate | Untraceable:
    """Trace until the aggregate has the same type before and after: 0 becomes a float where floats are added."""
    type_ = _type_of(initial) if start is None else start
    aggregate_first = start is not None
    for attempt in range(3):
        aggregate = Argument(AGGREGATE, type_)
        try:
            traced = trace(function, (aggregate, *arguments) if aggregate_first else (*arguments, aggregate))
        except UnknownField as error:
            if attempt == 0:
                raise
            raise NotTraceable(f'the aggregate loses its field "{error.name}"') from error
        if isinstance(traced, Untraceable):
            return traced
        if traced.expr.type == type_:
            return TracedAggregate(tuple(_terms(traced.expr, (), initial)), type_)
        type_ = traced.expr.type
    raise NotTraceable("the aggregate changes its type as it goes")


def _type_of(initial: object) -> pa.DataType:
    if isinstance(initial, dict):
        if not initial or not all(type(name) is str for name in initial):
            raise NotTraceable("an initial dict needs names for keys, and at least one")
        return pa.struct([(name, _type_of(part)) for name, part in initial.items()])
    if type(initial) is bool:
        raise NotTraceable("a bool is not merged from parts")
    return literal(initial).type


def _terms(expr: Expr, path: tuple[str, ...], initial: object) -> Iterator[AggregateTerm]:
    if isinstance(expr, StructExpr):
        for name, item in expr.items:
            known = isinstance(initial, dict) and name in initial
            yield from _terms(item, (*path, name), initial[name] if isinstance(initial, dict) and known else ABSENT)
        return
    if isinstance(initial, dict):
        raise NotTraceable("a dict of the aggregate becomes something else")
    yield _term(expr, path, initial)


def _term(expr: Expr, path: tuple[str, ...], initial: object) -> AggregateTerm:
    itself = Column(expr.type, AGGREGATE, path)
    if expr == itself and initial is not ABSENT:
        return AggregateTerm(path, "same", literal(initial), initial, expr.type)
    if not _reads(expr, AGGREGATE, "value"):
        return AggregateTerm(path, "same", expr, initial, expr.type)
    if isinstance(expr, Call) and expr.style == "function" and expr.name in ("least", "greatest"):
        op: MergeOp = "min" if expr.name == "least" else "max"
        return AggregateTerm(path, op, _without(itself, expr), initial, expr.type)
    if family(expr.type) in ("int", "float") and isinstance(expr, Binary) and expr.op in ("+", "-"):
        if not isinstance(initial, int | float | Absent):
            raise NotTraceable("a sum starts from a number")
        return AggregateTerm(path, "sum", _addend(itself, expr), initial, expr.type)
    raise NotTraceable(f"{_path_text(path)} is not a sum, least or greatest of itself and the record: {expr}")


def _reads(expr: Expr, *names: str) -> bool:
    return any(isinstance(node, Column) and node.name in names for node in walk(expr))


def _path_text(path: tuple[str, ...]) -> str:
    return ".".join((AGGREGATE, *path))


def _without(itself: Column, expr: Call) -> Expr:
    """Return what is compared with the aggregate."""
    others = list(_flattened(expr, expr.name))
    if others.count(itself) != 1:
        raise NotTraceable(f"{expr.name} does not take {itself} once")
    others.remove(itself)
    if not others or any(_reads(other, AGGREGATE) for other in others):
        raise NotTraceable(f"{itself} depends on more of the aggregate than itself")
    return others[0] if len(others) == 1 else OPERATIONS["function", expr.name].call(others)


def _flattened(expr: Expr, name: str) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.style == "function" and expr.name == name:
        for arg in expr.args:
            yield from _flattened(arg, name)
    else:
        yield expr


def _addend(itself: Column, expr: Binary) -> Expr:
    """Return what is added to the aggregate: `(agg + a) - b` adds `a - b`."""
    added: Expr | None = None
    found = 0
    for sign, part in _addends(expr, "+"):
        if part == itself and sign == "+":
            found += 1
        elif _reads(part, AGGREGATE):
            raise NotTraceable(f"{itself} is not a sum of itself and the record: {expr}")
        elif added is None:
            added = part if sign == "+" else _folded(unary("-", part))
        else:
            added = _folded(binary(sign, added, part))
    if found != 1 or added is None:
        raise NotTraceable(f"{itself} is not a sum of itself and the record: {expr}")
    return added


def _folded(expr: Expr) -> Expr:
    """Evaluate a computation of constants to a constant: evaluation expects a column in every operation."""
    return expr if any(isinstance(node, Column) for node in walk(expr)) else literal(evaluate_row(expr, {}))


def _addends(expr: Expr, sign: str) -> Iterator[tuple[str, Expr]]:
    """Return the parts of a sum around the aggregate; parts without it stay whole."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and _reads(expr, AGGREGATE):
        yield from _addends(expr.left, sign)
        opposite = {"+": "-", "-": "+"}[sign]
        yield from _addends(expr.right, sign if expr.op == "+" else opposite)
    else:
        yield sign, expr
