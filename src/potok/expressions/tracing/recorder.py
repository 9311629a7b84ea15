"""Record a trace: which expressions were created, and which of them never reached the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from potok.expressions.expr import Column, Expr, ListExpr, StructExpr, TupleExpr, walk
from potok.expressions.literals import literal, unify
from potok.expressions.python_types import UNTYPED, family
from potok.expressions.tracing.refusal import NotTraceable

LARGEST: Final = 500
"""Nodes in one expression. A value that is used twice is computed twice, so repeated doubling could grow fast."""

ExprOf = Callable[[object], Expr | None]


class Recorder:
    """The record of one trace."""

    def __init__(self) -> None:
        self._made: list[Expr] = []
        self._used: set[int] = set()
        self._sizes: dict[int, int] = {}

    def made(self, expr: Expr, *operands: Expr) -> Expr:
        size = 1 + sum(self._sizes.get(id(child), 1) for child in expr.children)
        if size > LARGEST:
            raise NotTraceable(f"the expression has more than {LARGEST} parts")
        self._made.append(expr)
        self._sizes[id(expr)] = size
        self._used.update(map(id, operands))
        return expr

    def lift(self, value: object, expr_of: ExprOf) -> Expr:
        """Return the expression of a proxy, of a constant, or of a dict or list of them."""
        expr = expr_of(value)
        if expr is not None:
            return expr
        if type(value) is dict:
            return self._struct(value, expr_of)
        if type(value) is list:
            items = self._lift_all(value, expr_of)
            if len({family(item.type) for item in items} - {"null"}) != 1:
                raise NotTraceable("a list is traced only if its items are of one type")
            type_, unified = unify(items)
            return self.made(ListExpr(pa.list_(type_), unified), *items)
        return literal(value)

    def result(self, value: object, expr_of: ExprOf) -> Expr:
        """Return the expression of the lambda's result, after checking that it includes everything that was
        computed.
        """
        if type(value) is tuple and value:
            items = self._lift_all(value, expr_of)
            type_ = pa.struct([(str(index), item.type) for index, item in enumerate(items)])
            expr: Expr = self.made(TupleExpr(type_, tuple(items)), *items)
        else:
            expr = self.lift(value, expr_of)
        parts = expr.items if isinstance(expr, TupleExpr) else (expr,)
        if any(family(part.type) == "null" for part in parts):
            raise NotTraceable("a result that is always None has no type")
        self._used.add(id(expr))
        self._check(expr)
        return expr

    def _lift_all(self, values: Sequence[object], expr_of: ExprOf) -> list[Expr]:
        return [self.lift(value, expr_of) for value in values]

    def _struct(self, value: dict[object, object], expr_of: ExprOf) -> Expr:
        names = [name for name in value if type(name) is str]
        if not names or len(names) < len(value):
            raise NotTraceable("a dict is traced only with names for keys, and at least one")
        items = self._lift_all(list(value.values()), expr_of)
        if any(family(item.type) == "null" for item in items):
            raise NotTraceable("a field that is always None has no type")
        type_ = pa.struct([(name, item.type) for name, item in zip(names, items, strict=True)])
        return self.made(StructExpr(type_, tuple(zip(names, items, strict=True))), *items)

    def _check(self, result: Expr) -> None:
        """Refuse a trace that drops a computed value, because Python might have raised for it."""
        columns = [node for node in walk(result) if isinstance(node, Column)]
        for column in columns:
            if column.type == UNTYPED:
                raise NotTraceable(f"the {column} has no declared type")
        for expr in self._made:
            if id(expr) in self._used or (isinstance(expr, Column) and _covered(expr, columns)):
                continue
            raise NotTraceable(f"it computes {expr} and does not return it")


def _covered(dropped: Column, columns: Sequence[Column]) -> bool:
    """Whether another field of the same struct is read: both raise for the same rows, those where it is None.

    So `{**v, "amount": 0}` does not need the `amount` that it replaces.
    """
    depth = len(dropped.path) - 1
    return any(
        column.name == dropped.name and len(column.path) > depth and column.path[:depth] == dropped.path[:depth]
        for column in columns
    )
