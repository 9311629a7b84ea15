"""The items of a SELECT: stars spelled out, names given to what has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.sql.errors import Refused, TypeMistake, UnknownName, closest
from potok.sql.expressions.check import check
from potok.sql.lowering.scope import PSEUDO, WINDOW_BOUNDS, Rows, RowScope, own_fields, resolve
from potok.sql.syntax import ast
from potok.sql.types import quoted, type_name

AS_VALUE = "AS_VALUE"


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result: its name, and the expression it comes from."""

    name: str
    expression: ast.Expression

    @property
    def is_copy(self) -> bool:
        """AS_VALUE(key): a column of the key once more, as a value."""
        return isinstance(self.expression, ast.Call) and self.expression.name == AS_VALUE


def items_of(query: ast.Select, rows: Rows, scope: RowScope, *, kept: bool = False) -> list[Item]:
    """The columns of the result. Those of a result that is `kept` must not be called as the system's are, and the
    bounds of its windows are in its key."""
    found: list[Item] = []
    count = 0
    for item in query.items:
        if isinstance(item, ast.Everything):
            found += [i for i in _everything(item, rows) if not (kept and _is_bound(i.expression))]
        elif isinstance(item, ast.EveryField):
            found += _every_field(item, scope)
        else:
            name = item.alias or _own_name(item.expression, rows)
            if not name:
                name, count = f"KSQL_COL_{count}", count + 1
            if kept and name in (*PSEUDO, *WINDOW_BOUNDS):
                hint = f"give it another: {name} AS something_else"
                raise Refused(f"{name} is a name of the system's", hint=hint, place=item.at)
            found.append(Item(name, item.expression))
    _check_twice(query, found)
    return found


def _is_bound(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Name) and expression.name in WINDOW_BOUNDS


def _everything(item: ast.Everything, rows: Rows) -> list[Item]:
    if item.source and item.source not in rows.sources:
        hint = closest(item.source, rows.sources) or f"the sources here are {', '.join(rows.sources)}"
        raise UnknownName(f"there is no source {quoted(item.source)} here", hint=hint, place=item.at)
    fields = [field for field in own_fields(rows) if item.source in ("", field.source)]
    return [
        Item(
            f"{field.source}_{field.name}" if rows.joined and field.source else field.name,
            ast.Name(field.name, field.source, at=item.at),
        )
        for field in fields
    ]


def _every_field(item: ast.EveryField, scope: RowScope) -> list[Item]:
    operand = check(item.operand, scope)
    if not pa.types.is_struct(operand.type):
        hint = "write ->* behind a STRUCT"
        raise TypeMistake(f"{type_name(operand.type)} has no fields", hint=hint, place=item.at)
    return [Item(field.name, ast.FieldOf(item.operand, field.name, at=item.at)) for field in operand.type]


def _own_name(expression: ast.Expression, rows: Rows) -> str:
    """The name that an expression has by itself: that of its column or of its field."""
    if isinstance(expression, ast.FieldOf):
        return expression.field
    if not isinstance(expression, ast.Name):
        return ""
    field = resolve(rows, expression)
    clash = rows.joined and len({f.source for f in rows.fields if f.name == field.name}) > 1
    return f"{field.source}_{field.name}" if clash and field.source else field.name


def _check_twice(query: ast.Select, items: Sequence[Item]) -> None:
    names = [item.name for item in items]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        hint = "give one of them another name: AS something_else"
        raise Refused(f"two columns of the result are called {quoted(twice)}", hint=hint, place=query.at)
