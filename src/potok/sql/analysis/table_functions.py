"""Table functions of a SELECT: each element of the lists that they return becomes a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from potok.sql.analysis.form import Form
from potok.sql.analysis.items import Item
from potok.sql.analysis.scope import RowScope
from potok.sql.errors import Refused
from potok.sql.expressions.check import check_table_function
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.functions.function import TableFunction
from potok.sql.functions.registry import function_named
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.walk import calls_of


def table_calls(node: Any) -> list[ast.Call]:
    return [call for call in calls_of(node) if isinstance(function_named(call.name), TableFunction)]


def exploded_slot(index: int) -> str:
    """Return the slot of the elements of a list."""
    return f"exploded.{index}"


def lists_of(items: Sequence[Item], scope: RowScope, form: Form) -> tuple[tuple[ast.Call, Typed], ...]:
    """Return the table functions of a query, and the lists that they compute."""
    calls = list(dict.fromkeys(call for item in items for call in table_calls(item.expression)))
    if calls and scope.rows.is_table and form is not Form.PULL:
        hint = "table functions make rows of the records of a stream"
        raise Refused(f"{show(calls[0])} is not supported over a table", hint=hint, location=calls[0].at)
    return tuple((call, _list_of(call, scope)) for call in calls)


def _list_of(call: ast.Call, scope: RowScope) -> Typed:
    inside = next((inner for a in call.arguments for inner in table_calls(a)), None)
    if inside is not None:
        hint = "write it in a query of its own first: CREATE STREAM ... AS SELECT"
        raise Refused("a table function is not allowed in another one", hint=hint, location=inside.at)
    return check_table_function(call, scope)


def items_of_lists(lists: Sequence[tuple[ast.Call, Typed]]) -> Mapping[ast.Call, Typed]:
    """Return the columns of table functions."""
    return {
        call: ColumnRef(made.type.value_type, exploded_slot(index), display=show(call))
        for index, (call, made) in enumerate(lists)
    }
