"""A pull query checked against a catalogue: what is read, joined, filtered, grouped, shown and ordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from potok.sql.catalog import Catalog, Source
from potok.sql.errors import Refused, TypeMistake
from potok.sql.expressions.check import check, check_table_function
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.lowering.explode import table_calls
from potok.sql.lowering.grouping import Grouping, GroupScope, aggregate_calls, group
from potok.sql.lowering.instants import with_instants
from potok.sql.lowering.items import Item, items_of
from potok.sql.lowering.scope import PSEUDO, ROWTIME, Field, Rows, RowScope
from potok.sql.properties import NO_PROPERTIES, PULL_LIMITS, PULLS, STREAM_PULLS, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import names_of, walk
from potok.sql.types import BIGINT, BOOLEAN, TIMESTAMP, quoted, type_name
from potok.statements.allowed import Allowed, allowed_by
from potok.statements.frames import rows_with, source_fields
from potok.statements.pull_joins import JoinPlan, plan_join
from potok.statements.results import ResultColumn


@dataclass(frozen=True, slots=True)
class RelationPlan:
    """A source to be read, and which of its columns."""

    source: Source
    alias: str
    fields: tuple[Field, ...]
    relation: ast.Relation
    as_of: Typed | None = None


@dataclass(frozen=True, slots=True)
class OrderPlan:
    expression: Typed
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class PullPlan:
    """All of a query, ready to be computed."""

    relations: tuple[RelationPlan, ...]
    joins: tuple[JoinPlan, ...]
    where: Typed | None
    lists: tuple[Typed, ...]
    """What table functions compute: each item becomes a row, under the slots `exploded.0`, `exploded.1`..."""
    grouping: Grouping | None
    having: Typed | None
    shown: tuple[Typed, ...]
    order: tuple[OrderPlan, ...]
    limit: int | None
    columns: tuple[ResultColumn, ...]
    wanted: frozenset[str]
    """The slots that are read of the sources."""
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
    in_time: str = ""
    """The slot of the time in whose order rows are aggregated, where the order matters."""

    @property
    def streams_rows(self) -> bool:
        """Whether rows can be shown as they are read, so that a LIMIT ends the reading."""
        return not self.joins and self.grouping is None and not self.order


def plan_pull(catalog: Catalog, query: ast.Select, properties: Properties = NO_PROPERTIES) -> PullPlan:
    """Raises the `SqlError` that says why a query cannot be pulled."""
    return _Planning(catalog, with_instants(query), properties).plan()


class _Planning:
    def __init__(self, catalog: Catalog, query: ast.Select, properties: Properties) -> None:
        self._catalog, self._query, self._types = catalog, query, catalog.types
        self._properties = properties

    def plan(self) -> PullPlan:
        query = self._query
        self._check_clauses()
        relations = self._relations()
        rows, joins = self._joined(relations)
        scope = RowScope(rows, self._types)
        where = None if query.where is None else self._where(query.where, scope)
        items = items_of(query, rows, scope)
        calls = aggregate_calls(query, items)
        if query.group_by or calls:
            return self._grouped(relations, joins, rows, where, items)
        if query.having is not None:
            raise Refused("HAVING needs GROUP BY", hint="filter rows with WHERE", place=query.having.at)
        lists, replaced = self._exploded(items, scope)
        shown = [check(item.expression, RowScope(rows, self._types, replaced)) for item in items]
        # Several records of a stream may have the same key.
        keys = {field.slot for field in rows.fields if field.is_key and rows.is_table}
        columns = [
            ResultColumn(item.name, typed.type, isinstance(typed, ColumnRef) and typed.column in keys)
            for item, typed in zip(items, shown, strict=True)
        ]
        order = self._order(items, shown, lambda part: check(part, RowScope(rows, self._types, replaced)))
        return self._finished(relations, joins, where, lists, None, None, shown, order, columns)

    def _check_clauses(self) -> None:
        query = self._query
        self._check_allowed()
        if query.partition_by:
            hint = "leave it out, or keep the query running: EMIT CHANGES"
            raise Refused("a query that ends writes no partitions", hint=hint, place=query.partition_by[0].at)
        if query.window is not None:
            hint = "keep the query running: EMIT CHANGES; or group by parts of the time: GROUP BY ROWTIME / 3600000"
            raise Refused("WINDOW is for queries that keep running", hint=hint, place=query.window.at)

    def _check_allowed(self) -> None:
        query = self._query
        if not self._properties.flag(PULLS):
            hint = f"write EMIT CHANGES, or SET '{PULLS}' = 'true'"
            raise Refused("pull queries are disabled", hint=hint, place=query.at)
        if query.limit is not None and not self._properties.flag(PULL_LIMITS):
            hint = f"leave it out, or SET '{PULL_LIMITS}' = 'true'"
            raise Refused("LIMIT is disabled for pull queries", hint=hint, place=query.at)

    def _relations(self) -> tuple[RelationPlan, ...]:
        query = self._query
        relations = [query.relation, *(clause.relation for clause in query.joins)]
        aliases = [relation.alias or relation.name for relation in relations]
        twice = next((alias for alias in aliases if aliases.count(alias) > 1), None)
        if twice is not None:
            hint = f"give it another name: JOIN {quoted(twice)} AS other"
            raise Refused(f"two sources are called {quoted(twice)}", hint=hint, place=relations[-1].at)
        return tuple(self._relation(relation, alias) for relation, alias in zip(relations, aliases, strict=True))

    def _relation(self, relation: ast.Relation, alias: str) -> RelationPlan:
        source = self._catalog.source(relation.name, relation.at)
        if source.is_table and not source.table_of:
            name = quoted(source.name)
            hint = (
                f"nobody keeps its rows: write CREATE SOURCE TABLE over its topic, "
                f"or CREATE TABLE queryable_{source.name} AS SELECT * FROM {name}"
            )
            raise Refused(f"table {name} cannot be pulled", hint=hint, place=relation.at)
        if not source.is_table and not self._properties.flag(STREAM_PULLS):
            hint = f"write EMIT CHANGES, or SET '{STREAM_PULLS}' = 'true'"
            raise Refused(
                f"{quoted(source.name)} is a stream, and pull queries over streams are disabled",
                hint=hint,
                place=relation.at,
            )
        if source.is_table:
            self._check_positions(alias)
        fields = source_fields(source, alias, positions=not source.is_table)
        return RelationPlan(source, alias, fields, relation, self._as_of(relation, source))

    def _check_positions(self, alias: str) -> None:
        for name in names_of(self._query):
            if name.name in PSEUDO and name.name != ROWTIME and name.source == alias:
                hint = "a row of a table is no single record; ask the stream that the table is made of"
                raise Refused(f"{name.name} is not known of the rows of a table", hint=hint, place=name.at)

    def _as_of(self, relation: ast.Relation, source: Source) -> Typed | None:
        if relation.as_of is None:
            return None
        if not source.is_table:
            hint = "AS OF is for tables that keep versions; filter a stream with WHERE ROWTIME <= ..."
            raise Refused(f"{quoted(source.name)} is a stream", hint=hint, place=relation.at)
        scope = RowScope(rows_with((), is_table=True), self._types)
        found = check(relation.as_of, scope)
        if found.type in (TIMESTAMP, BIGINT):
            return found
        to = BIGINT if pa.types.is_integer(found.type) else TIMESTAMP
        return check(relation.as_of, scope, to=to)

    def _joined(self, relations: Sequence[RelationPlan]) -> tuple[Rows, tuple[JoinPlan, ...]]:
        several = len(relations) > 1
        fields = list(relations[0].fields)
        is_table = all(relation.source.is_table for relation in relations)
        joins: list[JoinPlan] = []
        for relation, clause in zip(relations[1:], self._query.joins, strict=True):
            left, right = rows_with(fields, is_table=is_table), rows_with(relation.fields, is_table=is_table)
            joins.append(plan_join(left, right, clause, self._types))
            fields += relation.fields
        return rows_with(fields, is_table=is_table, joined=several), tuple(joins)

    def _where(self, condition: ast.Expression, scope: RowScope) -> Typed:
        inside = next(iter(aggregate_calls(replace(self._query, having=None), [Item("", condition)])), None)
        if inside is not None:
            hint = "filter groups with HAVING"
            raise Refused(f"{show(inside)} cannot stand in WHERE", hint=hint, place=inside.at)
        self._check_key_lists(condition, scope)
        return check(condition, scope, to=BOOLEAN)

    def _check_key_lists(self, condition: ast.Expression, scope: RowScope) -> None:
        """Check the items of IN over a key like `=`: neither NULL nor another type is allowed."""
        for part in walk(condition):
            if isinstance(part, ast.In) and not part.negated and isinstance(part.operand, ast.Name):
                if not scope.rows.is_table or not _is_key(check(part.operand, scope), scope.rows):
                    continue
                for item in part.items:
                    check(ast.Binary("=", part.operand, item, at=item.at), scope)

    def _exploded(self, items: Sequence[Item], scope: RowScope) -> tuple[list[Typed], dict[ast.Call, Typed]]:
        calls = list(dict.fromkeys(call for item in items for call in table_calls(item.expression)))
        for call in calls:
            inside = next((inner for a in call.arguments for inner in table_calls(a)), None)
            if inside is not None:
                hint = "write it in a query of its own first: CREATE STREAM ... AS SELECT"
                raise Refused("a table function cannot stand in another one", hint=hint, place=inside.at)
        lists: list[Typed] = [check_table_function(call, scope) for call in calls]
        replaced: dict[ast.Call, Typed] = {
            call: ColumnRef(made.type.value_type, f"exploded.{index}", shown=show(call))
            for index, (call, made) in enumerate(zip(calls, lists, strict=True))
        }
        return lists, replaced

    def _grouped(
        self,
        relations: tuple[RelationPlan, ...],
        joins: tuple[JoinPlan, ...],
        rows: Rows,
        where: Typed | None,
        items: Sequence[Item],
    ) -> PullPlan:
        query = self._query
        exploded = next((call for item in items for call in table_calls(item.expression)), None)
        if exploded is not None:
            hint = "explode in a query of its own first: CREATE STREAM ... AS SELECT"
            raise Refused(f"{show(exploded)} cannot be grouped", hint=hint, place=exploded.at)
        extra = [Item(f"ORDER {i}", part.expression) for i, part in enumerate(query.order_by)]
        grouping = group(query, [*items, *extra], rows, self._types, self._properties)
        scope = GroupScope(rows, grouping, self._types, False, query.group_by)

        def checked(part: ast.Expression, to: pa.DataType | None = None) -> Typed:
            return check(scope.prepared(part), scope, to=to)

        having = None if query.having is None else checked(query.having, BOOLEAN)
        shown = [checked(item.expression) for item in items]
        groups = {f"group.{name}" for name, _ in grouping.keys}
        columns = [
            ResultColumn(item.name, typed.type, isinstance(typed, ColumnRef) and typed.column in groups)
            for item, typed in zip(items, shown, strict=True)
        ]
        order = self._order(items, shown, checked)
        return self._finished(relations, joins, where, [], grouping, having, shown, order, columns)

    def _order(
        self, items: Sequence[Item], shown: Sequence[Typed], checked: Callable[[ast.Expression], Typed]
    ) -> list[OrderPlan]:
        found: list[OrderPlan] = []
        by_name = {item.name: typed for item, typed in zip(items, shown, strict=True)}
        for part in self._query.order_by:
            expression = part.expression
            typed: Typed
            if isinstance(expression, ast.Literal) and type(expression.value) is int:
                if not 1 <= expression.value <= len(shown):
                    hint = f"there are columns 1 to {len(shown)}"
                    raise Refused(f"there is no column {expression.value}", hint=hint, place=expression.at)
                typed = shown[expression.value - 1]
            elif isinstance(expression, ast.Name) and not expression.source and expression.name in by_name:
                typed = by_name[expression.name]
            else:
                typed = checked(expression)
            if pa.types.is_nested(typed.type):
                hint = "order by one of its fields or items"
                raise TypeMistake(f"{type_name(typed.type)} has no order", hint=hint, place=expression.at)
            first = part.descending if part.nulls_first is None else part.nulls_first
            found.append(OrderPlan(typed, part.descending, first))
        return found

    def _finished(
        self,
        relations: tuple[RelationPlan, ...],
        joins: tuple[JoinPlan, ...],
        where: Typed | None,
        lists: Sequence[Typed],
        grouping: Grouping | None,
        having: Typed | None,
        shown: Sequence[Typed],
        order: Sequence[OrderPlan],
        columns: Sequence[ResultColumn],
    ) -> PullPlan:
        read: list[Typed] = [*lists, *([] if where is None else [where])]
        for join in joins:
            read += [*join.left, *join.right]
        if grouping is None:
            read += [*shown, *(part.expression for part in order)]
        else:
            read += [typed for _, typed in grouping.keys]
            read += [argument for item in grouping.aggregates for argument in item.arguments]
        wanted = frozenset(slot for typed in read for slot in columns_of(typed))
        allowed = {} if where is None else allowed_by(where)
        in_time = f"{relations[0].alias}.{ROWTIME}" if _in_order(grouping, relations[0].source) else ""
        return PullPlan(
            relations,
            joins,
            where,
            tuple(lists),
            grouping,
            having,
            tuple(shown),
            tuple(order),
            self._query.limit,
            tuple(columns),
            wanted | ({in_time} - {""}),
            allowed,
            in_time,
        )


def _is_key(typed: Typed, rows: Rows) -> bool:
    return isinstance(typed, ColumnRef) and any(field.slot == typed.column for field in rows.fields if field.is_key)


def _in_order(grouping: Grouping | None, source: Source) -> bool:
    """Whether aggregates ask which record was first: partitions are read one after the other, and tell nothing."""
    aggregates = () if grouping is None or source.is_table else grouping.aggregates
    return any(item.how.fold.order_dependent for item in aggregates)
