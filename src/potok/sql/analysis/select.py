"""Analyse a SELECT: resolve names, type expressions, check clauses.

A query has three physical forms: a topology that writes a topic, records that are processed as they are appended, and
rows that are read at once. They differ in what they reject and in how they compute, and share this analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.duration import days
from potok.errors import TopologyError
from potok.sql.analysis.form import Form, check_clauses
from potok.sql.analysis.grouping import (
    Grouping,
    GroupScope,
    aggregate_calls,
    canonical,
    check_forgets,
    check_kept,
    group,
)
from potok.sql.analysis.items import Item, Names, items_of
from potok.sql.analysis.joins import JoinAnalysis, analyse_join
from potok.sql.analysis.order import Order, order_of
from potok.sql.analysis.relations import RelationAnalysis, relations_of
from potok.sql.analysis.scope import ROWTIME, WINDOW_BOUNDS, Rows, RowScope
from potok.sql.analysis.table_functions import items_of_lists, lists_of
from potok.sql.catalog import Catalog, WindowShape
from potok.sql.errors import Refused, SqlTypeError
from potok.sql.expressions.check import check
from potok.sql.expressions.conversions.parse_text import parser
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.properties import NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.walk import rewritten, walk
from potok.sql.types import BOOLEAN, TIMESTAMP
from potok.topology.nodes.windows import DEFAULT_RETENTION, Window, hopping, session, tumbling


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """An expression of PARTITION BY, and the name of its key column if it is not selected."""

    expression: ast.Expression
    typed: Typed
    name: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysed SELECT. Expressions refer to the slots of `rows`, or after a GROUP BY to those of `grouping`."""

    form: Form
    query: ast.Select
    relations: tuple[RelationAnalysis, ...]
    joins: tuple[JoinAnalysis, ...]
    rows: Rows
    """The rows of all sources, joined."""
    where: Typed | None
    items: tuple[Item, ...]
    lists: tuple[tuple[ast.Call, Typed], ...]
    """Table functions: each element of their lists becomes a row, under the slots `exploded.0`, `exploded.1`..."""
    grouping: Grouping | None
    shape: WindowShape | None
    window: Window | None
    having: Typed | None
    projected: tuple[Typed, ...]
    """The expressions of the items, in order."""
    partition_by: tuple[PartitionPart, ...]
    order: tuple[Order, ...]


def analyse(catalog: Catalog, query: ast.Select, form: Form, properties: Properties = NO_PROPERTIES) -> Analysis:
    """Analyse a SELECT. Raises `SqlError` if the query cannot be executed in this form."""
    query = with_instants(query)
    check_clauses(query, form, properties)
    relations = relations_of(catalog, query, form, properties)
    rows, joins = _joined(relations, query, catalog.types, form)
    scope = RowScope(rows, catalog.types)
    where = None if query.where is None else _where(query, query.where, scope, form)
    names = Names(rows)
    items = tuple(items_of(query, rows, scope, names, kept=form is Form.PERSISTENT))
    found = Analysis(form, query, relations, joins, rows, where, items, (), None, None, None, None, (), (), ())
    if query.group_by or (form is Form.PULL and aggregate_calls(query, items)):
        return _grouped(found, catalog.types, properties)
    _check_ungrouped(query, items)
    return _ungrouped(found, scope, names)


def _joined(
    relations: Sequence[RelationAnalysis], query: ast.Select, types: Mapping[str, pa.DataType], form: Form
) -> tuple[Rows, tuple[JoinAnalysis, ...]]:
    rows, joins = relations[0].rows, []
    for relation, clause in zip(relations[1:], query.joins, strict=True):
        joins.append(analyse_join(rows, relation.rows, clause, types, form))
        rows = joins[-1].rows
    return rows, tuple(joins)


def _where(query: ast.Select, condition: ast.Expression, scope: RowScope, form: Form) -> Typed:
    inside = next(iter(aggregate_calls(replace(query, having=None), [Item("", condition)])), None)
    if inside is not None:
        hint = "filter groups with HAVING"
        raise Refused(f"{show(inside)} is not allowed in WHERE", hint=hint, location=inside.at)
    if form is Form.PULL and scope.rows.is_table:
        _check_key_lists(condition, scope)
    return check(condition, scope, to=BOOLEAN)


def _check_key_lists(condition: ast.Expression, scope: RowScope) -> None:
    """Check the elements of IN over a key like `=`: neither NULL nor another type is allowed."""
    keys = {field.slot for field in scope.rows.fields if field.is_key}
    for part in walk(condition):
        if isinstance(part, ast.In) and not part.negated and isinstance(part.operand, ast.Name):
            operand = check(part.operand, scope)
            if isinstance(operand, ColumnRef) and operand.column in keys:
                for item in part.items:
                    check(ast.Binary("=", part.operand, item, at=item.at), scope)


def _check_ungrouped(query: ast.Select, items: Sequence[Item]) -> None:
    calls = aggregate_calls(query, items)
    if calls:
        group_all = f"add GROUP BY, or group everything: {show(calls[0])} ... GROUP BY 1"
        hint = "add GROUP BY" if query.window else group_all
        raise Refused(f"{show(calls[0])} needs GROUP BY", hint=hint, location=calls[0].at)
    if query.window is not None:
        hint = "windows are for aggregates: add GROUP BY"
        raise Refused("WINDOW needs GROUP BY", hint=hint, location=query.window.at)
    if query.having is not None:
        raise Refused("HAVING needs GROUP BY", hint="filter rows with WHERE", location=query.having.at)


def _ungrouped(found: Analysis, scope: RowScope, names: Names) -> Analysis:
    query = found.query
    lists = lists_of(found.items, scope, found.form)
    inner = replace(scope, replaced=items_of_lists(lists))

    def checked(part: ast.Expression) -> Typed:
        return check(part, inner)

    projected = tuple(checked(item.expression) for item in found.items)
    return replace(
        found,
        lists=lists,
        projected=projected,
        partition_by=_partition(query.partition_by, [checked(part) for part in query.partition_by], projected, names),
        order=order_of(query.order_by, found.items, projected, checked),
    )


def _partition(
    parts: Sequence[ast.Expression], typed: Sequence[Typed], projected: Sequence[Typed], names: Names
) -> tuple[PartitionPart, ...]:
    found = []
    for part, of_type in zip(parts, typed, strict=True):
        generated = of_type not in projected and not isinstance(part, ast.Name)
        name = names.name_for(part) if generated else part.name if isinstance(part, ast.Name) else ""
        found.append(PartitionPart(part, of_type, name))
    return tuple(found)


def _grouped(found: Analysis, types: Mapping[str, pa.DataType], properties: Properties) -> Analysis:
    query, rows = found.query, found.rows
    if query.window is not None and rows.is_table:
        hint = "windows are over the records of a stream"
        raise Refused("a table cannot be divided into windows", hint=hint, location=query.window.at)
    ordered = [Item(f"ORDER {index}", part.expression) for index, part in enumerate(query.order_by)]
    grouping = group(query, [*found.items, *ordered], rows, types, properties)
    if found.form is not Form.PULL:
        _check_continuous_groups(found, grouping)
    shape = None if query.window is None else shape_of(query.window)
    window = None if query.window is None else window_of(query.window, final=query.emit is ast.Emit.FINAL)
    scope = GroupScope(rows, grouping, types, shape is not None, query.group_by)

    def checked(part: ast.Expression, to: pa.DataType | None = None) -> Typed:
        return check(scope.prepared(part), scope, to=to)

    having = None if query.having is None else checked(query.having, BOOLEAN)
    projected = tuple(checked(item.expression) for item in found.items)
    order = order_of(query.order_by, found.items, projected, checked)
    return replace(
        found, grouping=grouping, shape=shape, window=window, having=having, projected=projected, order=order
    )


def _check_continuous_groups(found: Analysis, grouping: Grouping) -> None:
    query = found.query
    check_kept(grouping, found.relations[0].source)
    if not grouping.aggregates:
        hint = "add one to the SELECT or to HAVING: COUNT(*) AS n"
        raise Refused("GROUP BY needs an aggregate", hint=hint, location=query.group_by[0].at)
    if found.rows.is_table:
        check_forgets(grouping)


def is_group(item: Item, found: Analysis) -> bool:
    """Return whether an item is an expression of GROUP BY."""
    parts = [canonical(part, found.rows) for part in found.query.group_by]
    return canonical(item.expression, found.rows) in parts


_TIMES = (ROWTIME, *WINDOW_BOUNDS)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


def with_instants(query: ast.Select) -> ast.Select:
    """Replace strings that WHERE compares with ROWTIME or window bounds by milliseconds."""
    return query if query.where is None else replace(query, where=rewritten(query.where, _changed))


def _changed(node: Any) -> Any:
    match node:
        case ast.Binary(op, left, right) if op in _COMPARED and (_is_time(left) or _is_time(right)):
            return replace(node, left=_instant(left), right=_instant(right))
        case ast.Between(operand, low, high) if _is_time(operand):
            return replace(node, low=_instant(low), high=_instant(high))
    return None


def _is_time(node: ast.Expression) -> bool:
    return isinstance(node, ast.Name) and node.name in _TIMES


def _instant(node: ast.Expression) -> ast.Expression:
    if not isinstance(node, ast.Literal) or not isinstance(node.value, str):
        return node
    try:
        at = parser(TIMESTAMP)(node.value.strip())
    except ValueError as error:
        hint = "write a time such as '2024-05-26T23:59:58.123+0200', from the year on as far as you like"
        raise SqlTypeError(f"'{node.value}' is not a valid time", hint=hint, location=node.at) from error
    return replace(node, value=round(at.timestamp() * 1_000))


DEFAULT_GRACE = days(1)
"""The default grace, as in ksqlDB. It does not delay results, which late records update. EMIT FINAL waits for it, so
its default is no grace, as in ksqlDB."""


def shape_of(clause: ast.WindowClause) -> WindowShape:
    return WindowShape(clause.kind, None if clause.kind == "SESSION" else clause.size_ms)


def window_of(clause: ast.WindowClause, *, final: bool) -> Window:
    least = clause.size_ms + (clause.grace_ms or 0)
    if clause.retention_ms is not None and clause.retention_ms < least:
        hint = f"write RETENTION {least} MILLISECONDS or more"
        raise Refused("RETENTION is shorter than the window and its grace", hint=hint, location=clause.at)
    grace = _ms(clause.grace_ms or 0) if final or clause.grace_ms is not None else DEFAULT_GRACE
    retention = DEFAULT_RETENTION if clause.retention_ms is None else _ms(clause.retention_ms)
    try:
        if clause.kind == "TUMBLING":
            return tumbling(_ms(clause.size_ms), grace=grace, retention=retention)
        if clause.kind == "HOPPING":
            return hopping(_ms(clause.size_ms), _ms(clause.advance_ms or 0), grace=grace, retention=retention)
        return session(_ms(clause.size_ms), grace=grace, retention=retention)
    except TopologyError as error:
        raise Refused(error.message, hint=error.hint, location=clause.at) from error


def _ms(count: int) -> str:
    return f"{count} milliseconds"
