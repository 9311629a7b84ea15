"""A query as a topology: FROM, JOIN, WHERE, GROUP BY, HAVING, SELECT, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr, TupleExpr
from potok.sql.catalog import Catalog, SourceColumn, WindowShape
from potok.sql.errors import Refused
from potok.sql.expressions.check import check
from potok.sql.expressions.rename import rename
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.lowering.aggregates import NoKey, aggregate, is_plain, renamed
from potok.sql.lowering.computing import expr_of, function_for, key_expr, struct_of
from potok.sql.lowering.explode import explode, table_calls
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.grouping import Grouping, GroupScope, aggregate_calls, canonical, check_kept, group
from potok.sql.lowering.instants import with_instants
from potok.sql.lowering.items import Item, Names, items_of, with_types
from potok.sql.lowering.joins import check_formats, join
from potok.sql.lowering.scope import NOW, PSEUDO, WINDOW_BOUNDS, Rows, RowScope
from potok.sql.lowering.sources import source_rows
from potok.sql.lowering.windows import shape_of, window_of
from potok.sql.properties import INVALID_TIMESTAMPS, NO_PROPERTIES, SUPPRESS, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import calls_of, names_of
from potok.sql.types import BIGINT, BOOLEAN, quoted
from potok.topology.nodes import Filter, Map, MapValues, Node, Suppress, TableFilter, TableMapValues

OF_THE_PRESENT = ("UNIX_TIMESTAMP", "UNIX_DATE")
"""Functions that ask for the time of the batch, if they are given none."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The result of a query: the step it comes from, and its columns."""

    node: Node
    is_table: bool
    columns: tuple[SourceColumn, ...]
    window: WindowShape | None = None
    key: Expr | None = None
    """The key of the result of a table, if its columns have other names than in the table."""


class Lowering:
    """Lowers one query. What is `kept` has a key among its columns, because it is written to a topic."""

    def __init__(
        self,
        graph: Graph,
        catalog: Catalog,
        query: ast.Select,
        name: str,
        *,
        kept: bool,
        properties: Properties = NO_PROPERTIES,
    ) -> None:
        self._graph, self._catalog, self._name, self._kept = graph, catalog, name, kept
        self._properties = properties
        self._query = with_instants(query)

    def lower(self) -> Selected:
        query = self._query
        self._check_clauses()
        rows = self._from()
        if query.where is not None:
            rows = self._filtered(rows, query.where)
        scope = RowScope(rows, self._catalog.types)
        self._names = Names(rows)
        items = items_of(query, rows, scope, self._names, kept=self._kept)
        if query.group_by:
            return self._grouped(rows, items)
        calls = aggregate_calls(query, items)
        if calls:
            hint = (
                f"add GROUP BY, or group everything: {show(calls[0])} ... GROUP BY 1"
                if not query.window
                else "add GROUP BY"
            )
            raise Refused(f"{show(calls[0])} needs GROUP BY", hint=hint, place=calls[0].at)
        if query.window is not None:
            hint = "windows are for aggregates: add GROUP BY"
            raise Refused("WINDOW needs GROUP BY", hint=hint, place=query.window.at)
        if query.having is not None:
            raise Refused("HAVING needs GROUP BY", hint="filter rows with WHERE", place=query.having.at)
        exploded, replaced = explode(self._graph, rows, items, self._catalog.types)
        scope = RowScope(exploded, self._catalog.types, replaced)
        checked = with_types([(item, check(item.expression, scope)) for item in items])
        if query.partition_by:
            return self._partitioned(exploded, checked, scope)
        return self._selected(exploded, checked)

    def _check_clauses(self) -> None:
        query = self._query
        if query.order_by:
            hint = "ORDER BY is for pull queries, which end"
            raise Refused("a query that keeps running has no order", hint=hint, place=query.order_by[0].at)
        if query.emit is ast.Emit.FINAL and query.window is None:
            hint = "EMIT FINAL waits for windows to close: add WINDOW and GROUP BY, or write EMIT CHANGES"
            raise Refused("there is no window that could close", hint=hint, place=query.at)
        if query.emit is ast.Emit.FINAL and not self._properties.flag(SUPPRESS):
            hint = f"write EMIT CHANGES, or SET '{SUPPRESS}' = 'true'"
            raise Refused("EMIT FINAL is disabled", hint=hint, place=query.at)
        if query.group_by and query.partition_by:
            hint = "GROUP BY chooses the key already"
            raise Refused("GROUP BY and PARTITION BY exclude each other", hint=hint, place=query.partition_by[0].at)

    def _from(self) -> Rows:
        query = self._query
        relations = [query.relation, *(clause.relation for clause in query.joins)]
        aliases = [relation.alias or relation.name for relation in relations]
        twice = next((alias for alias in aliases if aliases.count(alias) > 1), None)
        if twice is not None:
            hint = f"give it another name: JOIN {quoted(twice)} AS other"
            raise Refused(f"two sources are called {quoted(twice)}", hint=hint, place=relations[-1].at)
        sources = [self._rows_of(relation, alias) for relation, alias in zip(relations, aliases, strict=True)]
        if query.joins or query.group_by:
            verb, place = ("JOIN", query.joins[0].at) if query.joins else ("GROUP BY", query.group_by[0].at)
            check_formats([self._catalog.source(r.name, r.at) for r in relations], verb, place)
        rows = sources[0]
        for right, clause in zip(sources[1:], query.joins, strict=True):
            rows = join(self._graph, self._catalog, rows, right, clause)
        return rows

    def _rows_of(self, relation: ast.Relation, alias: str) -> Rows:
        if relation.as_of is not None:
            hint = "AS OF is for pull queries on tables that keep versions"
            raise Refused("a query that keeps running has no AS OF", hint=hint, place=relation.at)
        source = self._catalog.source(relation.name, relation.at)
        # A table that occurs several times in a query is stored once, with the pseudo columns of all occurrences.
        wanted = {
            n.name for n in names_of(self._query) if n.name in PSEUDO and (source.is_table or n.source in ("", alias))
        }
        present = any(c.name in OF_THE_PRESENT and not c.arguments for c in calls_of(self._query))
        wanted |= {NOW} if present else set()
        return source_rows(
            self._graph,
            source,
            alias,
            wanted,
            relation.at,
            skips_null=not self._passes_null(),
            strict_times=self._properties.flag(INVALID_TIMESTAMPS),
        )

    def _passes_null(self) -> bool:
        """Whether records without a value go on, as in ksqlDB: to what only copies them, and to nothing else."""
        query = self._query
        return self._kept and not (query.where or query.joins or query.group_by or table_calls(query))

    def _filtered(self, rows: Rows, condition: ast.Expression) -> Rows:
        inside = next(iter(aggregate_calls(replace(self._query, having=None), [Item("", condition)])), None)
        if inside is not None:
            hint = "filter groups with HAVING"
            raise Refused(f"{show(inside)} cannot stand in WHERE", hint=hint, place=inside.at)
        typed = check(condition, RowScope(rows, self._catalog.types), to=BOOLEAN)
        function = function_for(expr_of(typed, rows))
        if rows.is_table:
            name = self._graph.name_of(rows.node, "filter")
            return rows.with_node(self._graph.add(TableFilter(name, None, rows.node, function)))
        return rows.with_node(
            self._graph.add(Filter(self._graph.name_of(rows.node, "filter"), None, rows.node, function))
        )

    # Groups

    def _grouped(self, rows: Rows, items: Sequence[Item]) -> Selected:
        query = self._query
        if query.window is not None and rows.is_table:
            hint = "windows are over the records of a stream"
            raise Refused("a table cannot be cut into windows", hint=hint, place=query.window.at)
        grouping = group(query, items, rows, self._catalog.types, self._properties)
        check_kept(grouping, self._catalog.source(query.relation.name, query.relation.at))
        if not grouping.aggregates:
            hint = "add one to the SELECT or to HAVING: COUNT(*) AS n"
            raise Refused("GROUP BY without an aggregate has nothing to keep", hint=hint, place=query.group_by[0].at)
        shape, window = None, None
        if query.window is not None:
            shape = shape_of(query.window)
            window = window_of(query.window, final=query.emit is ast.Emit.FINAL)
        plain = self._plain_names(items, grouping, rows, windowed=window is not None)
        if plain is not None:
            grouping = renamed(grouping, plain)
            grouped = aggregate(self._graph, rows, grouping, window, shape, self._name)
            columns = [SourceColumn(name, typed.type, is_key=True) for name, typed in grouping.keys]
            columns += [SourceColumn(a.name, a.how.result) for a in grouping.aggregates]
            return self._final(Selected(grouped.node, True, tuple(columns), shape))
        grouped = aggregate(self._graph, rows, grouping, window, shape, f"{self._name}.groups")
        scope = GroupScope(rows, grouping, self._catalog.types, shape is not None, query.group_by)
        if query.having is not None:
            grouped = self._having(grouped, scope, query.having)
        found = [(item, _placed(check(scope.prepared(item.expression), scope), grouped)) for item in items]
        checked = with_types(found)
        return self._final(self._selected(grouped, checked, [name for name, _ in grouping.keys]))

    def _plain_names(
        self, items: Sequence[Item], grouping: Grouping, rows: Rows, *, windowed: bool
    ) -> dict[str, str] | None:
        """The names of aggregates that are columns of the result as they are; None if there is more to compute."""
        if self._query.having is not None or rows.is_table or not all(map(is_plain, grouping.aggregates)):
            return None
        by_call = {aggregate.call: aggregate.name for aggregate in grouping.aggregates}
        keys = [name for name, _ in grouping.keys]
        names: dict[str, str] = {}
        seen: list[str] = []
        for item in items:
            if isinstance(item.expression, ast.Call) and item.expression in by_call:
                names[by_call[item.expression]] = item.name
            elif item.name in keys and _is_group(item, self._query, rows):
                seen.append(item.name)
            else:
                return None
        every = len(names) == len(grouping.aggregates) == len(items) - len(keys) and sorted(seen) == sorted(keys)
        return names if every and grouping.aggregates and not (windowed and not self._kept) else None

    def _having(self, rows: Rows, scope: GroupScope, condition: ast.Expression) -> Rows:
        typed = _placed(check(scope.prepared(condition), scope, to=BOOLEAN), rows)
        node = TableFilter(f"{self._name}.having", None, rows.node, function_for(expr_of(typed, rows)))
        return rows.with_node(self._graph.add(node))

    def _final(self, selected: Selected) -> Selected:
        if self._query.emit is not ast.Emit.FINAL:
            return selected
        node = self._graph.add(Suppress(f"{self._name}.final", None, selected.node))
        return replace(selected, node=node)

    # Projections

    def _selected(
        self, rows: Rows, checked: Sequence[tuple[Item, Typed]], key_names: Sequence[str] | None = None
    ) -> Selected:
        """Rows under the key that they have."""
        keys: list[SourceColumn] = []
        copied: list[tuple[str, Typed]] = []
        wanted = self._key_slots(rows, checked)
        taken: set[str] = set()
        for item, typed in checked:
            slot = typed.column if isinstance(typed, ColumnRef) else ""
            is_key = slot in wanted
            if is_key and slot in taken:
                hint = f"copy it into the value: AS_VALUE({show(item.expression)})"
                raise Refused(f"the key {show(item.expression)} is selected twice", hint=hint, place=item.expression.at)
            if is_key:
                taken.add(slot)
                keys.append(SourceColumn(item.name, typed.type, is_key=True))
            else:
                copied.append((item.name, typed))
        self._check_keys(rows, wanted, taken)
        ordered = self._in_key_order(rows, checked, keys)
        value, key = self._value(copied, rows), self._renamed_key(rows, ordered)
        node = self._mapped(rows, key, value)
        columns = (*ordered, *_columns(copied))
        return Selected(node, rows.is_table, columns, rows.window, key if rows.is_table else None)

    def _key_slots(self, rows: Rows, checked: Sequence[tuple[Item, Typed]]) -> list[str]:
        """Return the key columns. Of the columns that equal the key of a join, the first one selected is the key."""
        if rows.stand_ins:
            found = {typed.column for _, typed in checked if isinstance(typed, ColumnRef)}
            return [slot for slot in rows.stand_ins if slot in found][:1]
        return [
            field.slot
            for field in rows.fields
            if field.is_key and field.at.name == "key" and field.name.removeprefix("window.") not in WINDOW_BOUNDS
        ]

    def _check_keys(self, rows: Rows, wanted: Sequence[str], taken: set[str]) -> None:
        if not self._kept or (wanted and taken.issuperset(wanted)):
            return
        if rows.stand_ins:
            slots = {field.slot: f"{field.source}.{quoted(field.name)}" for field in rows.fields}
            shown = " or ".join(slots[slot] for slot in rows.stand_ins)
            hint = f"add {slots[rows.stand_ins[0]]} to the SELECT: it is the key of the result"
            raise Refused(f"the key of the join, {shown}, is missing", hint=hint, place=self._query.at)
        missing = next((field for field in rows.fields if field.slot in wanted and field.slot not in taken), None)
        if missing is not None:
            shown = quoted(missing.name.removeprefix("group."))
            hint = f"add {shown} to the SELECT: it is the key of the result"
            raise Refused(f"the key column {shown} is missing", hint=hint, place=self._query.at)

    def _in_key_order(
        self, rows: Rows, checked: Sequence[tuple[Item, Typed]], keys: Sequence[SourceColumn]
    ) -> tuple[SourceColumn, ...]:
        if len(keys) < 2:
            return tuple(keys)
        order = [field.slot for field in rows.fields if field.is_key]
        slots = {item.name: typed.column for item, typed in checked if isinstance(typed, ColumnRef)}
        return tuple(sorted(keys, key=lambda column: order.index(slots[column.name])))

    def _value(self, columns: Sequence[tuple[str, Typed]], rows: Rows) -> StructExpr:
        if not columns:
            hint = "select a column besides the key, or copy the key: AS_VALUE(key)"
            raise Refused("the result has no columns besides its key", hint=hint, place=self._query.at)
        return struct_of([(name, expr_of(typed, rows)) for name, typed in columns])

    def _renamed_key(self, rows: Rows, keys: Sequence[SourceColumn]) -> Expr | None:
        """Rename the key to these columns; None if unchanged. A single column has no name in a key."""
        bounds = [(part, Column(BIGINT, "key", (part,))) for part in ("start", "end")]
        fields = [field for field in rows.fields if field.is_key and field.at.name == "key"]
        if rows.window is not None:
            fields = [field for field in fields if field.at.path not in (("start",), ("end",))]
        names = [field.at.path[-1] if field.at.path else "" for field in fields]
        if len(keys) < 2 or len(keys) != len(fields) or names == [column.name for column in keys]:
            return None
        parts = [(c.name, expr_of(ColumnRef(f.type, f.slot), rows)) for c, f in zip(keys, fields, strict=True)]
        if rows.window is None:
            return struct_of(parts)
        return struct_of([("key", struct_of(parts)), *bounds])

    def _mapped(self, rows: Rows, key: Expr | None, value: Expr) -> Node:
        if rows.is_table:
            return self._graph.add(TableMapValues(self._name, None, rows.node, function_for(value), kept=True))
        name = self._graph.name_of(rows.node, "map_values")
        if key is not None:
            return self._remapped(rows, key, value, name)
        return self._graph.add(MapValues(name, None, rows.node, function_for(value), null_stays=True))

    def _remapped(self, rows: Rows, key: Expr, value: Expr, name: str, *, value_parts: tuple[int, ...] = ()) -> Node:
        pair = TupleExpr(pa.struct([("0", key.type), ("1", value.type)]), (key, value))
        node = Map(name, None, rows.node, function_for(pair), null_stays=True, value_parts=value_parts)
        return self._graph.add(node)

    def _partitioned(self, rows: Rows, checked: Sequence[tuple[Item, Typed]], scope: RowScope) -> Selected:
        if rows.is_table:
            hint = "make a stream of it, or group it: GROUP BY"
            raise Refused("a table cannot have another key", hint=hint, place=self._query.partition_by[0].at)
        parts = self._query.partition_by
        wanted = [check(part, scope) for part in parts]
        twice = next((at for at, typed in enumerate(wanted) if typed in wanted[:at]), None)
        if twice is not None:
            place = parts[twice].at
            raise Refused(
                f"{show(parts[twice])} occurs twice in PARTITION BY", hint="leave one of them out", place=place
            )
        if rows.window is not None:
            if [typed.column for typed in wanted if isinstance(typed, ColumnRef)] == [f.slot for f in rows.keys]:
                return self._selected(rows, checked)
            hint = "leave PARTITION BY out: a windowed source keeps its key and its windows"
            raise Refused("a windowed source cannot get another key", hint=hint, place=parts[0].at)
        name = self._graph.name_of(rows.node, "map")
        if any(typed.type == pa.null() for typed in wanted):
            if len(wanted) > 1:
                hint = "leave NULL out, or write PARTITION BY NULL alone for records without a key"
                raise Refused("NULL cannot be one of several parts of a key", hint=hint, place=parts[0].at)
            columns = [(item.name, typed) for item, typed in checked]
            none = Computed(pa.string(), (), NoKey(), "NULL")
            node = self._remapped(rows, none, self._value(columns, rows), name)
            return Selected(node, False, tuple(_columns(columns)))
        rest = list(checked)
        keys = [self._part_of_key(part, typed, rest) for part, typed in zip(parts, wanted, strict=True)]
        value = self._value([(item.name, typed) for item, typed in rest], rows)
        key = key_expr([(column.name, expr_of(typed, rows)) for column, typed in keys], partial=True)
        of_values = {field.slot for field in rows.fields if field.at.name == "value"}
        from_value = tuple(at for at, (_, typed) in enumerate(keys) if not of_values.isdisjoint(columns_of(typed)))
        node = self._remapped(rows, key, value, name, value_parts=from_value)
        values = _columns([(item.name, typed) for item, typed in rest])
        return Selected(node, False, (*(column for column, _ in keys), *values))

    def _part_of_key(
        self, part: ast.Expression, typed: Typed, rest: list[tuple[Item, Typed]]
    ) -> tuple[SourceColumn, Typed]:
        """Return the key column of an expression of PARTITION BY, and remove it from the value. `*` includes an
        expression that is not selected."""
        found = [pair for pair in rest if pair[1] == typed]
        if len(found) > 1:
            twice = found[1][0].expression
            hint = f"copy it into the value: AS_VALUE({show(twice)})"
            raise Refused(f"the key {show(part)} is selected twice", hint=hint, place=twice.at)
        if found:
            rest.remove(found[0])
            name = found[0][0].name
        elif self._kept and not any(isinstance(item, ast.Everything) and not item.source for item in self._query.items):
            hint = f"add {show(part)} to the SELECT: it is the key of the result"
            raise Refused(f"the key column {show(part)} is missing", hint=hint, place=part.at)
        else:
            name = part.name if isinstance(part, ast.Name) else self._names.name_for(part)
        return SourceColumn(name, typed.type, is_key=True), typed


def _columns(pairs: Sequence[tuple[str, Typed]]) -> list[SourceColumn]:
    return [SourceColumn(name, typed.type) for name, typed in pairs]


def _is_group(item: Item, query: ast.Select, rows: Rows) -> bool:
    return canonical(item.expression, rows) in [canonical(part, rows) for part in query.group_by]


def _placed(expression: Typed, rows: Rows) -> Typed:
    """An expression behind a GROUP BY, over the places where groups and aggregates are."""
    places = {field.name: field.slot for field in rows.fields}
    return rename(expression, places.__getitem__)
