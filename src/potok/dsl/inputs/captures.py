"""Tables and streams of a database whose changes are captured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

import pyarrow as pa

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.inputs.serdes import schema_of, timestamps_of
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.duration import Duration
from potok.errors import TopologyError
from potok.records.schemas.schema import Field, Schema
from potok.topology.capture import Capture, Decimals, SnapshotMode, Times
from potok.topology.nodes import Serde, StreamSource, TableSource


class CaptureOptions(TypedDict, total=False):
    """The options of `StreamsBuilder.cdc`; see `potok.topology.capture.Capture`."""

    name: str
    snapshot: SnapshotMode
    chunk_rows: int
    partitions: int
    with_schema: bool
    decimals: Decimals
    times: Times
    tombstones: bool
    heartbeat: Duration
    slot: str
    publication: str
    server_id: int


_TEXT, _NUMBER = Schema.scalar(pa.string()), Schema.scalar(pa.int64())


class CaptureHandle:
    """The tables of a database, as tables and streams that follow it.

    >>> shop = builder.cdc("postgresql://reader@db/shop", tables=["users", "orders"])
    >>> users = shop.table("users", key=int, value="name string, email string")
    """

    def __init__(self, graph: GraphBuilder, capture: Capture) -> None:
        self._graph, self.capture = graph, capture

    def topic(self, table: str) -> str:
        """Return the topic of a table, as Debezium names it: `shop.public.users`."""
        return self.capture.topic(table)

    def table(self, table: str, *, key: object = str, value: object = None, name: str | None = None) -> Table[Any, Any]:
        """Return a table of the database as a table of the topology.

        Args:
            table: The table: `users`, or `sales.orders`.
            key: The type of the primary key; of a key of several columns, all of them: `"order_id int, line int"`.
            value: The columns that are read: `"name string, price decimal(10,2)"`. Without it, rows are plain objects
                with Debezium's encodings, and steps on them run as Python.
            name: Names the table; by default its name in the database.
        """
        at = calling_location()
        serdes = self._key(key), Serde(self._format("debezium"), schema_of(value, at))
        step = name or self.capture.full_name(table).partition(".")[2]
        node = TableSource(step, at, self.topic(table), *serdes, timestamps_of(None, None, None, at))
        self._graph.add(node)
        return Table(self._graph, node)

    def stream(
        self, table: str, *, key: object = str, value: object = None, name: str | None = None
    ) -> Stream[Any, Any]:
        """Return the changes of a table as a stream of `op`, `before`, `after` and `ts_ms`.

        `op` is `c` for an insert, `u`, `d`, `r` for a row of the snapshot, and `t` for a truncate. `before` is what the
        database sends: with the default replica identity, only the key of a deleted row. For the whole row before each
        change, write `shop.table("users", ...).to_stream(changes=True)`.

        Args, as in `table`.
        """
        at = calling_location()
        row = schema_of(value, at)
        if row is not None and row.kind != "struct":
            raise TopologyError(
                f'the rows of "{table}" are not of type {row}', hint='declare columns: "name string"', at=at
            )
        envelope = None if row is None else _envelope(row)
        serdes = self._key(key), Serde(self._format("debezium_envelope"), envelope)
        step = self._graph.step_name(name, self.topic(table))
        times = timestamps_of(None, None, None, at)
        node = StreamSource(step, at, self.topic(table), *serdes, times, skips_null=True)
        self._graph.add(node)
        return Stream(self._graph, node)

    def _key(self, key: object) -> Serde:
        return Serde("debezium_key", schema_of(key, calling_location()))

    def _format(self, name: str) -> str:
        decimals = self.capture.decimals
        return name if decimals == "precise" else f"{name};decimals={decimals}"


def _envelope(row: Schema) -> Schema:
    # A row before a change may have its key alone.
    before = Schema.struct(replace(field, nullable=True) for field in row.fields)
    fields = [("op", _TEXT), ("before", before), ("after", row), ("ts_ms", _NUMBER)]
    return Schema.struct(Field(name, schema) for name, schema in fields)


def capture_database(graph: GraphBuilder, url: str, tables: Sequence[str], options: CaptureOptions) -> CaptureHandle:
    at = calling_location()
    try:
        # Only the schema of the database knows the unit of a column, and tables are declared without it.
        given: CaptureOptions = {"times": "micros", **options}
        capture = Capture(url=url, tables=tuple(tables), **given)
    except TypeError as error:
        hint = "see docs/cdc.md for the options"
        raise TopologyError(f"cdc() has no such option: {error}", hint=hint, at=at) from error
    except TopologyError as error:
        error.at = error.at or at
        raise
    if any(known.name == capture.name for known in graph.captures):
        hint = 'give each a name of its own: name="shop"'
        raise TopologyError(f'two captures are called "{capture.name}"', hint=hint, at=at)
    graph.captures.append(capture)
    return CaptureHandle(graph, capture)
