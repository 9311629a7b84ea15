"""Analyse GROUP BY: the grouping expressions, the aggregates, and the columns of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.sql.analysis.items import Item
from potok.sql.analysis.scope import WINDOW_BOUNDS, Field, Rows, RowScope, resolve
from potok.sql.catalog import Source, WindowShape
from potok.sql.errors import Refused, SqlTypeError
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import ColumnRef, Scope, Typed
from potok.sql.functions.aggregates.collections import collect_list, collect_set
from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload
from potok.sql.functions.registry import function_named
from potok.sql.properties import COLLECT_LIST_LIMIT, COLLECT_SET_LIMIT, NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.walk import calls_of, rewritten
from potok.sql.types import BIGINT, NULL, quoted, type_name

LIMITED = {"COLLECT_LIST": (COLLECT_LIST_LIMIT, collect_list), "COLLECT_SET": (COLLECT_SET_LIMIT, collect_set)}
"""Aggregates that a property limits, with their limited forms."""

NESTED = frozenset(
    ("ATTR", "AVG", "COLLECT_LIST", "COLLECT_SET", "CORRELATION", "COUNT_DISTINCT", "EARLIEST_BY_OFFSET", "HISTOGRAM")
    + ("LATEST_BY_OFFSET", "STDDEV_SAMP", "STDDEV_SAMPLE", "TOPK", "TOPKDISTINCT")
)
"""Aggregates whose state ksqlDB stores as a struct, list or map in the format of the source."""


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate of a query: the call, its columns, and how it is computed."""

    call: ast.Call
    arguments: tuple[Typed, ...]
    how: AggregateCall
    name: str
    """The field that holds the result."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A GROUP BY: groups by `keys`, with aggregates for each."""

    keys: tuple[tuple[str, Typed], ...]
    aggregates: tuple[Aggregated, ...]


def is_aggregate(call: ast.Call) -> bool:
    return isinstance(function_named(call.name), AggregateFunction)


def aggregate_calls(query: ast.Select, items: Sequence[Item]) -> list[ast.Call]:
    """Return the aggregates of a query without duplicates."""
    found: dict[ast.Call, None] = {}
    parts: list[Any] = [item.expression for item in items]
    parts += [query.having] if query.having is not None else []
    for part in parts:
        for call in calls_of(part):
            if is_aggregate(call):
                found[call] = None
    return list(found)


def canonical(expression: Any, rows: Rows) -> Any:
    """Return the expression with every column qualified by its source, so that equal columns compare equal."""

    def change(node: Any) -> Any:
        if isinstance(node, ast.Name) and (node.source or node.name not in WINDOW_BOUNDS):
            if rows.find(node.name, node.source):
                field = resolve(rows, node)
                return ast.Name(field.name, field.source, at=node.at)
            return node
        return None

    return rewritten(expression, change)


def group(
    query: ast.Select,
    items: Sequence[Item],
    rows: Rows,
    types: Mapping[str, pa.DataType],
    properties: Properties = NO_PROPERTIES,
) -> Grouping:
    scope = RowScope(rows, types)
    keys: list[tuple[str, Typed]] = []
    for index, expression in enumerate(query.group_by):
        _no_aggregate_in(
            expression,
            "cannot be grouped by",
            "group by columns; aggregate in the SELECT, or filter groups with HAVING",
        )
        typed = check(expression, scope)
        if typed.type == NULL:
            hint = "group by a column, or by a constant such as 1 for a single group"
            raise Refused("cannot group by NULL", hint=hint, location=expression.at)
        if any(typed == known for _, known in keys):
            hint = "leave one of them out"
            raise Refused(f"{show(expression)} occurs twice in GROUP BY", hint=hint, location=expression.at)
        keys.append((_key_name(expression, items, rows, index), typed))
    aggregates = [aggregated(call, scope, f"S{index}") for index, call in enumerate(aggregate_calls(query, items))]
    return Grouping(tuple(keys), tuple(_limited(aggregate, properties) for aggregate in aggregates))


def check_kept(grouping: Grouping, source: Source) -> None:
    """Reject aggregates whose state ksqlDB cannot store in DELIMITED."""
    if source.value_format.partition(";")[0] != "sql_delimited":
        return
    for aggregate in grouping.aggregates:
        if aggregate.call.name in NESTED:
            hint = "copy the stream into another format first: CREATE STREAM ... WITH (VALUE_FORMAT = 'JSON') AS SELECT"
            kept = f"{show(aggregate.call)} keeps a list, map or struct"
            message = f"{kept}, which {quoted(source.name)} cannot hold in the format DELIMITED"
            raise Refused(message, hint=hint, location=aggregate.call.at)


def check_forgets(grouping: Grouping) -> None:
    """Reject aggregates over a table that cannot undo a row."""
    for aggregate in grouping.aggregates:
        if aggregate.how.fold.undo is None:
            hint = (
                "rows of a table can be deleted, and this aggregate cannot remove a row; aggregate the stream instead"
            )
            message = f"{show(aggregate.call)} is not supported over a table"
            raise Refused(message, hint=hint, location=aggregate.call.at)


def grouped_rows(grouping: Grouping, shape: WindowShape | None) -> Rows:
    """Return the columns after a GROUP BY: the grouping expressions, the window bounds, and the aggregates."""
    fields = [Field(f"group.{name}", "", typed.type, is_key=True) for name, typed in grouping.keys]
    bounds = WINDOW_BOUNDS if shape is not None else ()
    fields += [Field(f"window.{bound}", "", BIGINT, is_key=True) for bound in bounds]
    fields += [Field(f"aggregate.{item.name}", "", item.how.result) for item in grouping.aggregates]
    return Rows(True, tuple(fields), shape)


def _limited(aggregate: Aggregated, properties: Properties) -> Aggregated:
    """Apply the limits of properties to an aggregate."""
    if aggregate.call.name not in LIMITED:
        return aggregate
    name, fold = LIMITED[aggregate.call.name]
    return replace(aggregate, how=replace(aggregate.how, fold=fold(properties.count(name))))


def _no_aggregate_in(expression: ast.Expression, why: str, hint: str) -> None:
    inside = next((call for call in calls_of(expression) if is_aggregate(call)), None)
    if inside is not None:
        raise Refused(f"{show(inside)} {why}", hint=hint, location=inside.at)


def _key_name(expression: ast.Expression, items: Sequence[Item], rows: Rows, index: int) -> str:
    wanted = canonical(expression, rows)
    found = next((item.name for item in items if canonical(item.expression, rows) == wanted), None)
    return found or (expression.name if isinstance(expression, ast.Name) else f"KSQL_KEY_{index}")


def aggregated(call: ast.Call, scope: Scope, name: str) -> Aggregated:
    """Resolve a call of an aggregate."""
    function = function_named(call.name)
    assert isinstance(function, AggregateFunction)
    for argument in call.arguments:
        _no_aggregate_in(
            argument, "is not allowed in another aggregate", "aggregate in a table first, then aggregate that table"
        )
    star = next((a for a in call.arguments if isinstance(a, ast.AnyRow) and a.source), None)
    if star is not None:
        hint = f"write {call.name}(*); a star behind a name is for the variables of MATCH_RECOGNIZE"
        raise Refused(f"{show(star)} is not allowed here", hint=hint, location=star.at)
    # COUNT(*) counts rows, as COUNT of nothing does.
    given = [] if any(isinstance(a, ast.AnyRow) for a in call.arguments) else list(call.arguments)
    for overload in function.overloads:
        found = _accepted(overload, given, scope)
        if found is not None:
            arguments, how = found
            return Aggregated(call, tuple(arguments), how, name)
    types = ", ".join(type_name(check(a, scope).type) for a in given)
    ways = "; ".join(overload.signature for overload in function.overloads)
    raise SqlTypeError(f"{call.name}({types}) is not known", hint=f"write {ways}", location=call.at)


def _accepted(
    overload: AggregateOverload, given: Sequence[ast.Expression], scope: Scope
) -> tuple[list[Typed], AggregateCall] | None:
    columns = overload.columns_among(len(given))
    literals = given[columns:]
    if len(given) < columns or not all(_is_constant(part) for part in literals):
        return None
    checked = [check(part, scope) for part in given]
    try:
        how = overload.accept([part.type for part in checked], [_constant(part) for part in literals])
    except Refused as error:
        if error.location is None and literals:
            error.location = literals[0].at
        raise
    if how is None:
        return None
    arguments = [check(part, scope, to=to) for part, to in zip(given[:columns], how.arguments, strict=False)]
    return arguments, how


def _is_constant(part: ast.Expression) -> bool:
    return isinstance(part, ast.Literal) or (isinstance(part, ast.Unary) and isinstance(part.operand, ast.Literal))


def _constant(part: ast.Expression) -> Any:
    if isinstance(part, ast.Unary):
        value = _constant(part.operand)
        return -value if part.op == "-" else value
    assert isinstance(part, ast.Literal)
    return part.value


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The scope of expressions after a GROUP BY: grouping expressions, aggregates, and the window bounds."""

    rows: Rows
    """The rows before the grouping, for resolving names."""
    grouping: Grouping
    custom_types: Mapping[str, pa.DataType]
    windowed: bool
    group_by: tuple[ast.Expression, ...]

    def prepared(self, expression: Any) -> Any:
        """Replace grouping expressions by their columns."""
        groups = {canonical(g, self.rows): index for index, g in enumerate(self.group_by)}

        def change(node: Any) -> Any:
            if isinstance(node, ast.Call) and is_aggregate(node):
                return node
            index = groups.get(canonical(node, self.rows)) if isinstance(node, ast.Node) else None
            return None if index is None else ast.Name(f"{_GROUP}{index}", "", at=node.at)

        return rewritten(expression, change)

    def column(self, name: ast.Name) -> Typed:
        if name.name.startswith(_GROUP) and not name.source:
            rendered, typed = self.grouping.keys[int(name.name.removeprefix(_GROUP))]
            return ColumnRef(typed.type, f"group.{rendered}", display=quoted(rendered))
        if name.name in WINDOW_BOUNDS and self.windowed:
            return ColumnRef(BIGINT, f"window.{name.name}", display=name.name)
        field = resolve(self.rows, name)
        raise Refused(
            f"{quoted(field.name)} is neither grouped by nor aggregated",
            hint=f"add it to GROUP BY, or take one of a group: LATEST_BY_OFFSET({quoted(field.name)})",
            location=name.at,
        )

    def call(self, call: ast.Call) -> Typed | None:
        for aggregate in self.grouping.aggregates:
            if aggregate.call == call:
                return ColumnRef(aggregate.how.result, f"aggregate.{aggregate.name}", display=show(call))
        return None


_GROUP = "\0group"
