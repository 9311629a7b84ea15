"""Push queries checked against a catalogue: those that look at one record at a time, and those that need a topology."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from potok.expressions.expr import Column
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.errors import Refused
from potok.sql.expressions.check import check, check_table_function
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.lowering.explode import table_calls
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.grouping import is_aggregate
from potok.sql.lowering.instants import with_instants
from potok.sql.lowering.items import items_of
from potok.sql.lowering.query import Lowering
from potok.sql.lowering.scope import WINDOW_BOUNDS, Field, RowScope
from potok.sql.lowering.sources import key_serde
from potok.sql.properties import NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import calls_of
from potok.sql.types import BIGINT, BOOLEAN
from potok.statements.frames import rows_with, source_fields
from potok.statements.results import ResultColumn
from potok.topology.graph import Topology
from potok.topology.infer import infer
from potok.topology.nodes import Sink, ToStream
from potok.topology.validate import validate

FORMAT = "sql_json"
_FILLER = "KSQL_FILLER"


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """What becomes of each record of a source. Of a table, a record without a value is a row that goes."""

    source: Source
    alias: str
    where: Typed | None
    lists: tuple[Typed, ...]
    shown: tuple[Typed, ...]
    columns: tuple[ResultColumn, ...]
    wanted: frozenset[str]
    limit: int | None


@dataclass(frozen=True, slots=True)
class TransientPlan:
    """A topology that runs as long as somebody listens, and how its output is read."""

    topology: Topology
    reading: RecordPlan


def needs_topology(query: ast.Select) -> bool:
    """Whether more than one record at a time is looked at; such as has no meaning is refused as in any query."""
    stateful = query.joins or query.group_by or query.window or query.having or query.order_by
    final = query.emit is ast.Emit.FINAL
    return bool(stateful or final or any(map(is_aggregate, calls_of(query))))


def plan_records(catalog: Catalog, query: ast.Select) -> RecordPlan:
    """A query of one record at a time."""
    query = with_instants(query)
    relation = query.relation
    if relation.as_of is not None:
        hint = "AS OF is for pull queries on tables that keep versions"
        raise Refused("a query that keeps running has no AS OF", hint=hint, place=relation.at)
    source = catalog.source(relation.name, relation.at)
    alias = relation.alias or relation.name
    rows = rows_with(source_fields(source, alias, positions=True), is_table=source.is_table)
    scope = RowScope(rows, catalog.types)
    where = None if query.where is None else check(query.where, scope, to=BOOLEAN)
    items = items_of(query, rows, scope)
    calls = list(dict.fromkeys(call for item in items for call in table_calls(item.expression)))
    if calls and source.is_table:
        hint = "table functions make rows of the records of a stream"
        raise Refused(f"{show(calls[0])} cannot be taken over a table", hint=hint, place=calls[0].at)
    lists = [_list(call, scope) for call in calls]
    replaced: dict[ast.Call, Typed] = {
        call: ColumnRef(made.type.value_type, f"exploded.{index}", shown=show(call))
        for index, (call, made) in enumerate(zip(calls, lists, strict=True))
    }
    inner = RowScope(rows, catalog.types, replaced)
    shown = [check(item.expression, inner) for item in items]
    for part in query.partition_by:
        check(part, inner)
    keys = {field.slot for field in rows.fields if field.is_key}
    columns = [
        ResultColumn(item.name, typed.type, isinstance(typed, ColumnRef) and typed.column in keys)
        for item, typed in zip(items, shown, strict=True)
    ]
    read = [*shown, *lists, *([] if where is None else [where])]
    wanted = frozenset(slot for typed in read for slot in columns_of(typed))
    return RecordPlan(source, alias, where, tuple(lists), tuple(shown), tuple(columns), wanted, query.limit)


def _list(call: ast.Call, scope: RowScope) -> Typed:
    inside = next((inner for a in call.arguments for inner in table_calls(a)), None)
    if inside is not None:
        hint = "write it in a query of its own first: CREATE STREAM ... AS SELECT"
        raise Refused("a table function cannot stand in another one", hint=hint, place=inside.at)
    return check_table_function(call, scope)


def plan_transient(
    catalog: Catalog, query: ast.Select, name: str, properties: Properties = NO_PROPERTIES
) -> TransientPlan:
    """A query that groups or joins: a topology of this name that writes to a topic of the same name."""
    graph = Graph(name)
    selected = Lowering(graph, catalog, filled(query), "RESULT", kept=False, properties=properties).lower()
    key_type = infer(graph.topology())[selected.node].key
    keys = _key_columns(selected.columns, key_type, windowed=selected.window is not None)
    values = tuple(column for column in selected.columns if not column.is_key)
    key_format = FORMAT if keys else "none"
    source = Source(name, selected.is_table, (*keys, *values), name, key_format, FORMAT, window=selected.window)
    node = selected.node
    if selected.is_table:
        node = graph.add(ToStream(graph.name_of(node, "changes"), None, node))
    graph.add(Sink(f"to-{name}", None, node, name, key_serde(source).format, FORMAT, 1))
    topology = graph.topology()
    validate(topology)
    infer(topology)
    return TransientPlan(topology, _reading(catalog, query, source))


def filled(query: ast.Select) -> ast.Select:
    """Add a column if only key columns are selected, because a record must have a value."""
    if any(isinstance(item, ast.SelectItem) and not isinstance(item.expression, ast.Name) for item in query.items):
        return query
    filler = ast.SelectItem(ast.Literal(True, at=query.at), _FILLER, at=query.at)
    return replace(query, items=(*query.items, filler))


def _key_columns(
    columns: tuple[SourceColumn, ...], key_type: pa.DataType | None, *, windowed: bool
) -> tuple[SourceColumn, ...]:
    """The columns of the key as it is written, those that were not asked for among them."""
    asked = tuple(column for column in columns if column.is_key)
    if key_type is None:
        return asked
    inner = key_type.field(0).type if windowed else key_type
    if len(asked) == 1 and asked[0].type == inner:
        return asked
    if pa.types.is_struct(inner):
        return tuple(SourceColumn(field.name, field.type, is_key=True) for field in inner)
    return asked or (SourceColumn("ROWKEY", inner, is_key=True),)


def _reading(catalog: Catalog, query: ast.Select, source: Source) -> RecordPlan:
    """The columns of a query in the order in which they were asked for, out of the records that it writes."""
    fields = {field.name: field for field in source_fields(source, source.name, positions=False)}
    names = _names(catalog, query)
    if "ROWKEY" in fields and "ROWKEY" not in names and any(isinstance(i, ast.Everything) for i in query.items):
        names = ["ROWKEY", *names]
    chosen = [fields[name] for name in names]
    shown = tuple(ColumnRef(field.type, field.slot) for field in chosen)
    columns = tuple(ResultColumn(field.name, field.type, field.is_key) for field in chosen)
    wanted = frozenset(field.slot for field in chosen)
    return RecordPlan(source, source.name, None, (), shown, columns, wanted, query.limit)


def _names(catalog: Catalog, query: ast.Select) -> list[str]:
    relations = [query.relation, *(clause.relation for clause in query.joins)]
    fields = [
        field
        for relation in relations
        for field in source_fields(
            catalog.source(relation.name, relation.at), relation.alias or relation.name, positions=True
        )
    ]
    if query.window is not None:
        fields += [Field(name, "", BIGINT, Column(BIGINT, "window", (name,)), hidden=True) for name in WINDOW_BOUNDS]
    rows = rows_with(fields, is_table=False, joined=bool(query.joins))
    return [item.name for item in items_of(query, rows, RowScope(rows, catalog.types))]
