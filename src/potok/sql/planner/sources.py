"""A stream or table of the catalog as the first steps of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.columnar import function_of
from potok.expressions.computed import Computed
from potok.expressions.expr import Column
from potok.expressions.failures import RowFailures
from potok.expressions.function import Function
from potok.records.formats.windowed import inner_option
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.sql.analysis.scope import PSEUDO, WINDOW_BOUNDS, rows_with, slot_of, source_fields
from potok.sql.catalog import Source, SourceColumn
from potok.sql.errors import Refused, SourceLocation
from potok.sql.functions.function import Context, ScalarFunction
from potok.sql.functions.registry import function_named
from potok.sql.planner.column_positions import NOW, LocatedRows
from potok.sql.planner.computing import Pick, function_for, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.types import BIGINT, BYTES, INT, TIMESTAMP, VARCHAR, array, quoted, struct
from potok.topology.nodes import (
    Annotate,
    MapValues,
    Node,
    Serde,
    StreamSource,
    TableMapValues,
    TableSource,
    Timestamps,
)
from potok.topology.nodes.stateless import About

HEADER_ROWS = array(struct([("KEY", VARCHAR), ("VALUE", BYTES)]))
ABOUT = {"ROWTIME": About.TIMESTAMP, "ROWPARTITION": About.PARTITION, "ROWOFFSET": About.OFFSET}
HEADERS = "ROWHEADERS"
_NO_KEY = Serde("none", Schema.scalar(pa.string()))


def source_rows(
    graph: Graph,
    source: Source,
    alias: str,
    wanted: Iterable[str],
    location: SourceLocation | None = None,
    *,
    skips_null: bool = True,
    strict_times: bool = False,
) -> LocatedRows:
    """Read a source. `wanted` names the pseudo columns that the query uses; with `skips_null`, a stream record without
    a value is not a row; with `strict_times`, a record without a valid timestamp stops the query."""
    asked = [name for name in (*PSEUDO, NOW) if name in set(wanted)]
    times = replace(timestamps_of(source), strict=strict_times)
    about = [(name, ABOUT.get(name, About.PROCESSING_TIME)) for name in asked]
    about += [(HEADERS, About.HEADERS)] if source.headers else []
    node = _source_node(graph, source, times, location, tuple(about), skips_null=skips_null)
    rows = rows_with(source_fields(source, alias, positions=True), is_table=source.is_table, window=source.window)
    positions = {slot_of(alias, name): at for name, at in _column_positions(source).items()}
    if not about:
        return LocatedRows(node, rows, positions)
    annotated: Node = node
    if not source.is_table:
        annotated = graph.add(Annotate(graph.name_of(node, "annotate"), None, node, tuple(about)))
    for name in asked:
        positions[NOW if name == NOW else slot_of(alias, name)] = Column(PSEUDO.get(name, BIGINT), "value", (name,))
    if source.headers:
        annotated = _with_headers(graph, annotated, source, [at for at in positions.values() if at.name == "value"])
    for column in source.headers:
        positions[slot_of(alias, column.name)] = Column(_header_type(column), "value", (column.name,))
    return LocatedRows(annotated, rows, positions)


def _source_node(
    graph: Graph,
    source: Source,
    times: Timestamps,
    location: SourceLocation | None,
    about: tuple[tuple[str, About], ...],
    *,
    skips_null: bool,
) -> StreamSource | TableSource:
    """Return the source node of a topic; `about` adds metadata of the record to the rows of a table."""
    kind: type[StreamSource] | type[TableSource] = TableSource if source.is_table else StreamSource
    key, value = key_serde(source), Serde(source.value_format, source.value_schema)
    found = graph.known(kind, source.topic)
    if found is not None:
        if (found.key, found.value, found.timestamps) != (key, value, times):
            hint = f"name one declaration of it twice: FROM {source.name} a JOIN {source.name} b"
            raise Refused(f'topic "{source.topic}" is declared in two ways in this query', hint=hint, location=location)
        return found
    node = kind(graph.name_of(source.topic, ""), None, source.topic, key, value, times)
    if isinstance(node, StreamSource):
        return graph.add(replace(node, skips_null=skips_null))
    return graph.add(replace(node, about=about, every_update=True))


def key_serde(source: Source) -> Serde:
    type_ = source.key_type
    if type_ is None:
        return _NO_KEY
    if source.window is None:
        return Serde(source.key_format, declared_schema(type_))
    type_ = pa.struct([("key", type_), ("start", pa.int64()), ("end", pa.int64())])
    kind = "session" if source.window.kind == "SESSION" else f"windowed;size_ms={source.window.size_ms}"
    return Serde(f"{kind};inner={inner_option(source.key_format)}", declared_schema(type_))


def _column_positions(source: Source) -> dict[str, Column]:
    """Return where the columns of a source are in its records, by name."""
    path: tuple[str, ...] = ("key",) if source.window is not None else ()
    several = len(source.keys) > 1
    positions = {c.name: Column(c.type, "key", (*path, c.name) if several else path) for c in source.keys}
    if source.window is not None:
        for name, part in zip(WINDOW_BOUNDS, ("start", "end"), strict=True):
            positions[name] = Column(BIGINT, "key", (part,))
    return {**positions, **{c.name: Column(c.type, "value", (c.name,)) for c in source.values}}


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """Return the headers of records as structs of key and value, or the last header of a name."""

    name: str

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        lists = columns[0]
        if not self.name:
            flat = lists.values
            renamed = pa.StructArray.from_arrays([flat.field(0), flat.field(1)], fields=list(HEADER_ROWS.value_type))
            return pa.ListArray.from_arrays(lists.offsets, renamed, type=HEADER_ROWS)
        found = [
            next((header["value"] for header in reversed(headers or ()) if header["name"] == self.name), None)
            for headers in lists.to_pylist()
        ]
        assert len(found) == rows
        return pa.array(found, BYTES)


def _header_type(column: SourceColumn) -> pa.DataType:
    return HEADER_ROWS if column.header == "" else BYTES


def _with_headers(graph: Graph, node: Node, source: Source, values: Sequence[Column]) -> Node:
    """Return headers as columns of the value, in addition to existing ones."""
    at = Column(array(struct([("name", VARCHAR), ("value", BYTES)])), "value", (HEADERS,))
    items = [(value.path[-1], Computed(value.type, (value,), Pick(), quoted(value.path[-1]))) for value in values]
    for c in source.headers:
        items.append((c.name, Computed(_header_type(c), (at,), HeaderColumn(c.header or ""), quoted(c.name))))
    name, function = graph.name_of(node, "headers"), function_for(struct_of(items))
    if source.is_table:
        return graph.add(TableMapValues(name, None, node, function))
    return graph.add(MapValues(name, None, node, function, null_stays=True))


def timestamps_of(source: Source) -> Timestamps:
    """Return the event time from a column, if the source names one."""
    if not source.timestamp:
        return Timestamps()
    return Timestamps(function=time_of(source), text=quoted(source.timestamp))


def time_of(source: Source) -> Function:
    """Computes the time from the TIMESTAMP column of a source."""
    column = source.column(source.timestamp)
    assert column is not None
    at, name, pattern = _column_positions(source)[column.name], quoted(column.name), source.timestamp_format
    text = f"column {name} by '{pattern}'" if pattern else f"column {name}"
    return function_of(Computed(pa.int64(), (at,), Instants(pattern), text), name)


@dataclass(frozen=True, slots=True)
class Instants:
    """Return a column as milliseconds since 1970: numbers, timestamps, or strings by a Java pattern. Times before 1970
    are invalid, as in Kafka."""

    pattern: str

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        found = self._read(columns[0], rows)
        return pc.if_else(pc.less(found, 0), pa.scalar(None, BIGINT), found)

    def _read(self, column: pa.Array, rows: int) -> pa.Array:
        if column.type in (BIGINT, INT):
            return column.cast(BIGINT)
        if column.type == TIMESTAMP:
            return pc.divide(column.cast(BIGINT), 1_000)
        reads = function_named("STRINGTOTIMESTAMP")
        assert isinstance(reads, ScalarFunction)
        pattern = pa.repeat(pa.scalar(self.pattern, VARCHAR), rows)
        return reads.overloads[0].compute([column, pattern], rows, BIGINT, Context())
