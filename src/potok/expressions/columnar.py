"""Functions that are given as expressions and need no tracing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.expressions.row import evaluate_row


@dataclass(frozen=True, slots=True, eq=False)
class RowByRow:
    """Calls an expression as a function of single values."""

    expr: Expr
    names: tuple[str, ...]

    def __call__(self, *values: Any) -> Any:
        return evaluate_row(self.expr, dict(zip(self.names, values, strict=True)))


RECORD = ("key", "value")
JOINED = ("key", "left", "right")


def function_of(expr: Expr, text: str, names: tuple[str, ...] = RECORD) -> Function:
    """Return a function of a step that is given as an expression and needs no tracing."""
    return Function(RowByRow(expr, names), len(names), name=text, expr=expr)
