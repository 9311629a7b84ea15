"""The items of a SELECT: stars expanded, unnamed columns named."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.sql.analysis.scope import PSEUDO, WINDOW_BOUNDS, Rows, RowScope, own_fields, resolve
from potok.sql.errors import Refused, SqlTypeError, UnknownName, closest
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import Typed
from potok.sql.syntax import ast
from potok.sql.types import NULL, quoted, type_name

GENERATED = "KSQL_COL"
_NUMBERED = re.compile(r"(?P<name>.*?)(?:_(?P<number>[0-9]+))?", re.DOTALL)


class Names:
    """Generate names for unnamed columns: a struct field keeps its own, others are KSQL_COL_0 and so on.

    A number is appended to a name that a column of the sources has.
    """

    def __init__(self, rows: Rows) -> None:
        self._used: dict[str, set[int]] = {}
        for field in own_fields(rows):
            base, number = _numbered(field.name)
            self._used.setdefault(base, set()).add(number)

    def name_for(self, expression: ast.Expression) -> str:
        base = _numbered(expression.field)[0] if isinstance(expression, ast.FieldOf) else GENERATED
        used = self._used.setdefault(base, set())
        number = next(number for number in itertools.count() if number not in used)
        used.add(number)
        return f"{base}_{number}" if number or base == GENERATED else base


def _numbered(name: str) -> tuple[str, int]:
    found = _NUMBERED.fullmatch(name)
    assert found is not None
    return found["name"], int(found["number"] or 0)


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result: its name and its expression."""

    name: str
    expression: ast.Expression


def items_of(
    query: ast.Select, rows: Rows, scope: RowScope, names: Names | None = None, *, kept: bool = False
) -> list[Item]:
    """Return the columns of the result. Columns of a persistent result (`kept`) must not have reserved names, and its
    window bounds are in its key."""
    found: list[Item] = []
    names = names or Names(rows)
    for item in query.items:
        if isinstance(item, ast.Everything):
            every = _everything(item, rows, keys_last=bool(query.partition_by))
            hides_bounds = kept and not rows.joined
            found += [i for i in every if not (hides_bounds and _is_bound(i.expression))]
        elif isinstance(item, ast.EveryField):
            found += _every_field(item, scope)
        else:
            name = item.alias or _own_name(item.expression, rows) or names.name_for(item.expression)
            if kept and name in (*PSEUDO, *WINDOW_BOUNDS):
                hint = f"give it another: {name} AS something_else"
                raise Refused(f"{name} is a reserved name", hint=hint, location=item.at)
            found.append(Item(name, item.expression))
    _check_twice(query, found)
    return found


def _is_bound(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Name) and expression.name in WINDOW_BOUNDS


def _everything(item: ast.Everything, rows: Rows, *, keys_last: bool) -> list[Item]:
    """Return the columns of the sources; with another key, the old key columns come after the others."""
    if item.source and item.source not in rows.sources:
        hint = closest(item.source, rows.sources) or f"the sources here are {', '.join(rows.sources)}"
        raise UnknownName(f"there is no source {quoted(item.source)} here", hint=hint, location=item.at)
    fields = [field for field in own_fields(rows) if item.source in ("", field.source)]
    if keys_last:
        fields.sort(key=lambda field: (rows.sources.index(field.source), field.is_key))
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
        raise SqlTypeError(f"{type_name(operand.type)} has no fields", hint=hint, location=item.at)
    return [Item(field.name, ast.FieldOf(item.operand, field.name, at=item.at)) for field in operand.type]


def _own_name(expression: ast.Expression, rows: Rows) -> str:
    """Return the name of the column that an expression refers to."""
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
        raise Refused(f"two columns of the result are called {quoted(twice)}", hint=hint, location=query.at)


def with_types(checked: list[tuple[Item, Typed]]) -> list[tuple[Item, Typed]]:
    """Return the columns of a result; raise if one has no type, such as a bare NULL."""
    bare = next((item for item, typed in checked if typed.type == NULL), None)
    if bare is not None:
        hint = f"write its type: CAST(NULL AS VARCHAR) AS {quoted(bare.name)}"
        raise Refused(f"the column {quoted(bare.name)} is NULL and has no type", hint=hint, location=bare.expression.at)
    return checked
