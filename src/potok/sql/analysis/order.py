"""ORDER BY expressions, column names or column numbers of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.sql.analysis.items import Item
from potok.sql.errors import Refused, SqlTypeError
from potok.sql.expressions.typed import Typed
from potok.sql.syntax import ast
from potok.sql.types import type_name


@dataclass(frozen=True, slots=True)
class Order:
    expression: Typed
    descending: bool
    nulls_first: bool


def order_of(
    parts: Sequence[ast.OrderItem],
    items: Sequence[Item],
    projected: Sequence[Typed],
    checked: Callable[[ast.Expression], Typed],
) -> tuple[Order, ...]:
    """Return what to sort by. `checked` types an expression that is not a column of the result."""
    found: list[Order] = []
    by_name = {item.name: typed for item, typed in zip(items, projected, strict=True)}
    for part in parts:
        expression = part.expression
        typed: Typed
        if isinstance(expression, ast.Literal) and type(expression.value) is int:
            if not 1 <= expression.value <= len(projected):
                hint = f"there are columns 1 to {len(projected)}"
                raise Refused(f"there is no column {expression.value}", hint=hint, location=expression.at)
            typed = projected[expression.value - 1]
        elif isinstance(expression, ast.Name) and not expression.source and expression.name in by_name:
            typed = by_name[expression.name]
        else:
            typed = checked(expression)
        if pa.types.is_nested(typed.type):
            hint = "order by one of its fields or items"
            raise SqlTypeError(f"{type_name(typed.type)} has no order", hint=hint, location=expression.at)
        first = part.descending if part.nulls_first is None else part.nulls_first
        found.append(Order(typed, part.descending, first))
    return tuple(found)
