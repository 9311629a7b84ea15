"""ORDER BY as it was parsed."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sql.syntax.ast.expressions import Expression, Node


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
