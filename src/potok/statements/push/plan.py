"""Plan push queries: those that process one record at a time, and those that need a topology."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from potok.sql.analysis.form import Form
from potok.sql.analysis.grouping import is_aggregate
from potok.sql.analysis.scope import source_fields
from potok.sql.analysis.select import Analysis, analyse
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.planner.graph import Graph
from potok.sql.planner.query import lower
from potok.sql.planner.sources import key_serde
from potok.sql.properties import NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.walk import calls_of
from potok.statements.results import ResultColumn, result_columns
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Sink, ToStream
from potok.topology.validate import validate

FORMAT = "sql_json"
_FILLER = "KSQL_FILLER"


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """How each record of a source is processed. A record of a table without a value deletes its row."""

    source: Source
    alias: str
    where: Typed | None
    lists: tuple[Typed, ...]
    projected: tuple[Typed, ...]
    columns: tuple[ResultColumn, ...]
    wanted: frozenset[str]
    limit: int | None


@dataclass(frozen=True, slots=True)
class TransientPlan:
    """A topology that runs while a client is connected, and how its output is decoded."""

    topology: Topology
    reading: RecordPlan


def needs_topology(query: ast.Select) -> bool:
    """Return whether a query processes more than one record at a time."""
    stateful = query.relation.match or query.joins or query.group_by or query.window or query.having or query.order_by
    final = query.emit is ast.Emit.FINAL
    return bool(stateful or final or any(map(is_aggregate, calls_of(query))))


def plan_records(catalog: Catalog, query: ast.Select, properties: Properties = NO_PROPERTIES) -> RecordPlan:
    """Plan a query that processes one record at a time."""
    found = analyse(catalog, query, Form.PUSH, properties)
    relation, lists = found.relations[0], tuple(typed for _, typed in found.lists)
    read = [*found.projected, *lists, *([] if found.where is None else [found.where])]
    wanted = frozenset(slot for typed in read for slot in columns_of(typed))
    keys = {field.slot for field in found.rows.fields if field.is_key}
    columns = result_columns(found, keys)
    return RecordPlan(
        relation.source, relation.alias, found.where, lists, found.projected, columns, wanted, query.limit
    )


def plan_transient(
    catalog: Catalog, query: ast.Select, name: str, properties: Properties = NO_PROPERTIES
) -> TransientPlan:
    """Plan a query that groups or joins, as a topology of this name that writes to a topic of the same name."""
    graph = Graph(name)
    analysis = analyse(catalog, filled(query), Form.PUSH, properties)
    selected = lower(graph, analysis, "RESULT", properties)
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
    return TransientPlan(topology, _reading(analysis, source))


def filled(query: ast.Select) -> ast.Select:
    """Add a column if only key columns are selected, because a record must have a value."""
    if any(isinstance(item, ast.SelectItem) and not isinstance(item.expression, ast.Name) for item in query.items):
        return query
    filler = ast.SelectItem(ast.Literal(True, at=query.at), _FILLER, at=query.at)
    return replace(query, items=(*query.items, filler))


def _key_columns(
    columns: tuple[SourceColumn, ...], key_type: pa.DataType | None, *, windowed: bool
) -> tuple[SourceColumn, ...]:
    """Return the columns of the key as it is written, including those that were not selected."""
    asked = tuple(column for column in columns if column.is_key)
    if key_type is None:
        return asked
    inner = key_type.field(0).type if windowed else key_type
    if len(asked) == 1 and asked[0].type == inner:
        return asked
    if pa.types.is_struct(inner):
        return tuple(SourceColumn(field.name, field.type, is_key=True) for field in inner)
    return asked or (SourceColumn("ROWKEY", inner, is_key=True),)


def _reading(analysis: Analysis, source: Source) -> RecordPlan:
    """Return the selected columns in order, from the records of the topology."""
    fields = {field.name: field for field in source_fields(source, source.name, positions=False)}
    chosen = [fields[item.name] for item in analysis.items if item.name != _FILLER]
    projected = tuple(ColumnRef(field.type, field.slot) for field in chosen)
    columns = tuple(ResultColumn(field.name, field.type, field.is_key) for field in chosen)
    wanted = frozenset(field.slot for field in chosen)
    return RecordPlan(source, source.name, None, (), projected, columns, wanted, analysis.query.limit)
