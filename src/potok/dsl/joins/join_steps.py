"""Build the nodes of a join of a stream with a stream or with a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import Handle, Selector, UnnamedState, selector
from potok.dsl.inputs.serdes import schema_of
from potok.dsl.table import GlobalTable, Table
from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.expressions.function import JOINER, Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    JoinKind,
    JoinWindow,
    LookupKey,
    Node,
    StreamJoin,
    TableFilter,
    TableLookup,
    TableMapValues,
    TableRecords,
    TableSource,
    ToTable,
)

Within = Duration | tuple[Duration, Duration]
"""How far apart two records may be: one duration for both directions, or how much earlier and how much later."""

Joiner = Callable[..., Any]
"""A function of the left and the right value, or of the key and both."""


class JoinWithoutWindow(TopologyError):
    """A stream-stream join without a time bound."""

    def __init__(self, left: str, right: str, at: Location | None) -> None:
        super().__init__(
            f'cannot join stream "{left}" to stream "{right}" without a window',
            hint="pass within=, for example within=minutes(5), or turn one side into a table",
            at=at,
        )


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The arguments of a join besides its two sides."""

    how: JoinKind
    functions: tuple[Selector, ...]
    joiner: Joiner | None
    within: Within | None
    grace: Duration | None
    on: Selector | None
    key: object
    value: object
    wait_for_table: bool
    name: str | None
    at: Location | None


def join_node(graph: GraphBuilder, stream: Node, other: Handle, name: str, asked: JoinRequest) -> Node:
    """Return the node that joins `stream` with `other`. Nodes that it needs before it are added to the graph."""
    schema = schema_of(asked.value, asked.at)
    if isinstance(other, Table):
        return _with_table(graph, stream, other, name, schema, asked)
    return _with_stream(stream, other, name, schema, asked)


def join_name(graph: GraphBuilder, stream: Node, other: Handle, asked: JoinRequest) -> str:
    """Return the name of the step and of its state."""
    verb = "join" if asked.how is JoinKind.INNER else f"{asked.how}_join"
    derived = f"{stream.name}.{verb}.{other.node.name}"
    if not asked.name and (graph.is_counted(other.node.name) or graph.is_counted(stream.name)):
        raise UnnamedState(derived, calling_location())
    return asked.name or derived


def _with_stream(stream: Node, other: Handle, name: str, schema: Schema | None, asked: JoinRequest) -> Node:
    if asked.within is None:
        raise JoinWithoutWindow(stream.name, other.node.name, asked.at)
    if asked.on is not None or asked.wait_for_table:
        hint = "give the streams the same key first: stream.select_key(...)"
        raise TopologyError("on= and wait_for_table= are for joins with a table", hint=hint, at=asked.at)
    joiner = _joiner(asked.functions, asked)
    return StreamJoin(name, asked.at, stream, other.node, asked.how, _window(asked.within, asked), joiner, schema)


def _with_table(
    graph: GraphBuilder, stream: Node, other: Table[Any, Any], name: str, schema: Schema | None, asked: JoinRequest
) -> Node:
    at = asked.at
    if asked.within is not None:
        hint = "omit within=, or pass grace= to join the row as of the record's time"
        raise TopologyError("a join with a table has no window", hint=hint, at=at)
    on, functions = asked.on, asked.functions
    if isinstance(other, GlobalTable) and on is None:
        on, functions = _first(functions, other.node.name, at)
    joiner = _joiner(functions, asked)
    if on is not None:
        stream = LookupKey(f"{name}.on", at, stream, selector(on), schema_of(asked.key, at))
        graph.add(stream)
    gate = asked.wait_for_table
    history_ms = retained_history_ms(other.node)
    if asked.grace is None and history_ms is None:
        return TableLookup(name, at, stream, other.node, asked.how, joiner, schema, gate)
    grace_ms = None if asked.grace is None else _not_negative(to_ms(asked.grace), "grace", at)
    table = history_of(graph, other.node, name, at)
    return HistoryLookup(name, at, stream, table, asked.how, grace_ms, history_ms, joiner, schema, gate)


def _first(functions: tuple[Selector, ...], table: str, at: Location | None) -> tuple[Selector, tuple[Selector, ...]]:
    if not functions:
        hint = 'name the key: stream.join(products, "product_id", lambda order, product: ...)'
        raise TopologyError(f'a join with the global table "{table}" needs the key to look up', hint=hint, at=at)
    return functions[0], functions[1:]


def _joiner(functions: tuple[Selector, ...], asked: JoinRequest) -> Function | None:
    given = functions if asked.joiner is None else (*functions, asked.joiner)
    if not given:
        return None
    if len(given) > 1 or isinstance(given[0], str):
        hint = "pass lambda left, right: ...; the key to look up in a table is on="
        raise TopologyError("a join takes one joiner, a function of both values", hint=hint, at=asked.at)
    return Function.of(given[0], (2, 3), JOINER)


def _window(within: Within, asked: JoinRequest) -> JoinWindow:
    before, after = within if isinstance(within, tuple) else (within, within)
    return JoinWindow(
        _not_negative(to_ms(before), "within", asked.at),
        _not_negative(to_ms(after), "within", asked.at),
        _not_negative(to_ms(asked.grace or 0), "grace", asked.at),
    )


def _not_negative(time_ms: int, what: str, at: Location | None) -> int:
    if time_ms < 0:
        raise TopologyError(f"{what}= cannot be negative", hint=f"write {what}=minutes(5)", at=at)
    return time_ms


def history_of(graph: GraphBuilder, table: Node, name: str, at: Location | None) -> Node:
    """Return the records that a table is read from. Return the table itself if its rows are computed from several
    records or expire.

    A table emits one change per row and batch; a join with past versions needs every record.
    """
    if isinstance(table, TableSource | ToTable) and table.lifetime.ttl_ms is not None:
        return table
    if isinstance(table, ToTable):
        return table.upstream
    if isinstance(table, TableSource):
        return _added(graph, TableRecords(graph.step_name(None, f"{name}.history"), at, table))
    if isinstance(table, TableFilter | TableMapValues):
        upstream = history_of(graph, table.upstream, name, at)
        if upstream.is_table:
            return table
        step = graph.step_name(None, f"{name}.history")
        if isinstance(table, TableFilter):
            return _added(graph, HistoryFilter(step, at, upstream, table.predicate, table.negate))
        return _added(graph, HistoryMapValues(step, at, upstream, table.function, table.schema))
    return table


def retained_history_ms(table: Node) -> int | None:
    """Return how long a table keeps the versions of its rows; None if it keeps no versions."""
    if isinstance(table, TableFilter | TableMapValues):
        return retained_history_ms(table.upstream)
    return table.lifetime.history_ms if isinstance(table, TableSource | ToTable) else None


def _added(graph: GraphBuilder, node: Node) -> Node:
    graph.add(node)
    return node
