"""Persistent queries: their topology, and the stream or table that they write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from potok.errors import TopologyError
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, TupleExpr
from potok.expressions.failures import RowFailures
from potok.sql.analysis.form import Form
from potok.sql.analysis.select import Analysis, analyse
from potok.sql.catalog import Catalog, Source, SourceColumn
from potok.sql.definitions import timestamp_of
from potok.sql.errors import Refused, SourceLocation
from potok.sql.expressions.conversions.casts import cast_column
from potok.sql.formats import result_formats
from potok.sql.functions.function import Context, widens
from potok.sql.planner.computing import function_for, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.planner.query import Selected, lower
from potok.sql.planner.sources import key_serde, source_rows, time_of
from potok.sql.properties import NO_PROPERTIES, TOPIC_PREFIX, Properties
from potok.sql.syntax import ast
from potok.sql.types import quoted, type_name
from potok.sql.with_clause import KEYS, Options
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Map, MapValues, Sink, TableMapValues, TableSource, ToStream
from potok.topology.nodes.retention import Lifetime
from potok.topology.validate import validate

_OWN_KEYS = tuple(key for key in KEYS if key not in ("WINDOW_TYPE", "WINDOW_SIZE", "HISTORY"))


@dataclass(frozen=True, slots=True)
class Persistent:
    """A query to run, and what it writes."""

    topology: Topology
    source: Source


def lower_create(
    statement: ast.CreateAs, catalog: Catalog, query_id: str, text: str, properties: Properties = NO_PROPERTIES
) -> Persistent:
    """CREATE STREAM or TABLE ... AS SELECT."""
    options = Options.of(statement.properties, statement.at, _OWN_KEYS)
    graph = Graph(query_id)
    analysis = analyse(catalog, statement.query, Form.PERSISTENT, properties)
    selected = lower(graph, analysis, statement.name, properties)
    _check_kind(statement, selected)
    source = replace(
        _result(statement, catalog, options, selected, properties),
        statement=text,
        query=query_id,
        table_of=query_id if statement.is_table else "",
    )
    _write(graph, selected, source)
    return Persistent(_checked(graph, statement.at), source)


def lower_insert(
    statement: ast.InsertSelect, catalog: Catalog, query_id: str, properties: Properties = NO_PROPERTIES
) -> Persistent:
    """INSERT INTO ... SELECT: the columns of the query are those of the stream, by name."""
    target = catalog.source(statement.name, statement.at)
    _check_writable(target, statement)
    analysis = analyse(catalog, statement.query, Form.PERSISTENT, properties)
    graph = Graph(query_id)
    selected = lower(graph, analysis, f"insert-{statement.name}", properties)
    if selected.is_table or target.is_table:
        hint = "INSERT INTO is for streams; a table is written by one query: CREATE TABLE ... AS SELECT"
        raise Refused(
            f"{quoted(target.name)} cannot be inserted into by a query of a table", hint=hint, location=statement.at
        )
    _check_columns(selected.columns, target, statement, _literals(analysis))
    _write(graph, _in_order(graph, selected, target, statement), target)
    return Persistent(_checked(graph, statement.at), target)


def _in_order(graph: Graph, selected: Selected, target: Source, statement: ast.InsertSelect) -> Selected:
    """Return the columns in the order and with the types of the target, which formats without names require."""
    keys = [column for column in selected.columns if column.is_key]
    wanted = [column.name for column in target.keys]
    if [column.name for column in keys] != wanted:
        hint = f"the order is {', '.join(map(quoted, wanted))}: PARTITION BY gives it"
        raise Refused("the columns of the key have another order", hint=hint, location=statement.query.at)
    types = {column.name: column.type for column in selected.columns}
    values = [(column.name, column.type) for column in selected.columns if not column.is_key]
    if values != [(column.name, column.type) for column in target.values]:
        positions = [(c, Column(types[c.name], "value", (c.name,))) for c in target.values]
        value = struct_of([(c.name, Computed(c.type, (at,), Widen(c.type), quoted(c.name))) for c, at in positions])
        name = graph.name_of(selected.node, "reorder")
        node = graph.add(MapValues(name, None, selected.node, function_for(value), null_stays=True))
        selected = replace(selected, node=node)
    if [column.type for column in keys] != [column.type for column in target.keys]:
        several = len(keys) > 1
        at_keys = [Column(column.type, "key", (column.name,) if several else ()) for column in keys]
        made = [
            Computed(c.type, (at,), Widen(c.type), quoted(c.name)) for c, at in zip(target.keys, at_keys, strict=True)
        ]
        key = struct_of(list(zip(wanted, made, strict=True))) if several else made[0]
        selected = replace(selected, key=key)
    return selected


@dataclass(frozen=True, slots=True)
class Widen:
    """Widen a column to a type that holds all of its values."""

    type: pa.DataType

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        return cast_column(columns[0], self.type, Context())


def lower_source_table(source: Source, query_id: str) -> Topology:
    """CREATE SOURCE TABLE: the rows of a topic, stored for pull queries."""
    graph = Graph(query_id)
    rows = source_rows(graph, source, source.name, ())
    if isinstance(rows.node, TableMapValues):
        node = replace(rows.node, name=source.name, kept=True)
        table = Graph(query_id)
        table.add(rows.node.upstream)
        table.add(node)
        return _checked(table)
    assert isinstance(rows.node, TableSource)
    node_of_topic = replace(rows.node, name=source.name, lifetime=Lifetime(history_ms=source.history_ms))
    graph = Graph(query_id)
    graph.add(node_of_topic)
    return _checked(graph)


def _checked(graph: Graph, location: SourceLocation | None = None) -> Topology:
    topology = graph.topology()
    try:
        validate(topology)
        infer(topology)
    except TopologyError as error:
        raise Refused(error.message, hint=error.hint, location=location) from error
    return topology


def _check_kind(statement: ast.CreateAs, selected: Selected) -> None:
    name = quoted(statement.name)
    if statement.is_table and not selected.is_table:
        hint = "aggregate it with GROUP BY, or write CREATE STREAM"
        raise Refused(f"{name} cannot be a table: the query returns a stream", hint=hint, location=statement.at)
    if not statement.is_table and selected.is_table:
        hint = "write CREATE TABLE"
        raise Refused(f"{name} cannot be a stream: the query returns a table", hint=hint, location=statement.at)


def _check_writable(target: Source, statement: ast.InsertSelect) -> None:
    if target.read_only:
        hint = "it was created with CREATE SOURCE"
        raise Refused(f"{quoted(target.name)} is read-only", hint=hint, location=statement.at)
    if target.headers:
        hint = "declare a stream over the topic without header columns, and insert into that"
        raise Refused(f"{quoted(target.name)} has header columns", hint=hint, location=statement.at)
    if target.window is not None:
        raise Refused(
            f"{quoted(target.name)} has windows, which no stream has", hint="insert into another", location=statement.at
        )


def _literals(analysis: Analysis) -> dict[str, Decimal]:
    """Return the literal numbers that the query selects, by column."""
    numbers = {}
    for item in analysis.items:
        sign, expression = 1, item.expression
        if isinstance(expression, ast.Unary) and expression.op == "-":
            sign, expression = -1, expression.operand
        value = expression.value if isinstance(expression, ast.Literal) else None
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            numbers[item.name] = sign * Decimal(str(value))
    return numbers


def _holds(type_: pa.DataType, number: Decimal | None) -> bool:
    """Return whether a DECIMAL holds a number, however wide the type of the number is."""
    if number is None or not number.is_finite() or not pa.types.is_decimal(type_):
        return False
    exact = number.normalize().as_tuple()
    assert isinstance(exact.exponent, int)
    whole = len(exact.digits) + exact.exponent
    return -exact.exponent <= type_.scale and (not number or whole <= type_.precision - type_.scale)


def _check_columns(
    columns: tuple[SourceColumn, ...], target: Source, statement: ast.InsertSelect, literals: Mapping[str, Decimal]
) -> None:
    wanted = [c for c in target.columns if c.header is None]
    found = [(column.name, column.type, column.is_key) for column in columns]
    known = {(name, is_key): type_ for name, type_, is_key in found}
    fits = all(
        (c.name, c.is_key) in known
        and (widens(known[c.name, c.is_key], c.type) or _holds(c.type, literals.get(c.name)))
        for c in wanted
    )
    if not fits or len(found) != len(wanted):
        rendered = ", ".join(f"{quoted(c.name)} {type_name(c.type)}{' KEY' if c.is_key else ''}" for c in wanted)
        got = ", ".join(f"{quoted(name)} {type_name(type_)}{' KEY' if key else ''}" for name, type_, key in found)
        raise Refused(
            f"the query returns {got}, but {quoted(target.name)} has {rendered}",
            hint="select columns with these names and types; AS gives another name, CAST another type",
            location=statement.query.at,
        )


def _result(
    statement: ast.CreateAs, catalog: Catalog, options: Options, selected: Selected, properties: Properties
) -> Source:
    first = catalog.source(statement.query.relation.name, statement.query.relation.at)
    keys = tuple(column for column in selected.columns if column.is_key)
    values = tuple(column for column in selected.columns if not column.is_key)
    drops_key = bool(statement.query.partition_by) and not keys
    topic = options.topic(f"{properties.text(TOPIC_PREFIX)}{statement.name}")
    formats = result_formats(options, properties, first, keys, values, drops_key=drops_key, topic=topic)
    options.count("REPLICAS")
    return Source(
        statement.name,
        statement.is_table,
        selected.columns,
        topic,
        formats.key,
        formats.value,
        timestamp=timestamp_of(options, selected.columns),
        timestamp_format=options.text("TIMESTAMP_FORMAT"),
        window=selected.window,
        partitions=options.partitions() or first.partitions,
        retention_ms=options.retention_ms(compacted=statement.is_table and selected.window is None),
        cleanup_policy=options.cleanup_policy(),
    )


def _write(graph: Graph, selected: Selected, source: Source) -> None:
    node = selected.node
    if selected.is_table:
        node = graph.add(ToStream(graph.name_of(node, "to_stream"), None, node))
    if selected.key is not None:
        value = Column(source.value_type, "value", ())
        pair = TupleExpr(pa.struct([("0", selected.key.type), ("1", value.type)]), (selected.key, value))
        node = graph.add(Map(graph.name_of(node, "map"), None, node, function_for(pair), null_stays=True))
    compacted = source.cleanup_policy or ("compact" if source.is_table and source.window is None else "delete")
    retention = source.retention_ms if source.retention_ms is not None and source.retention_ms >= 0 else None
    graph.add(
        Sink(
            graph.name_of(node, f"to.{source.topic}"),
            None,
            node,
            source.topic,
            key_serde(source).format,
            source.value_format,
            source.partitions,
            retention_ms=retention if "delete" in compacted else None,
            cleanup_policy=compacted,
            stamp=time_of(source) if source.timestamp else None,
        )
    )
