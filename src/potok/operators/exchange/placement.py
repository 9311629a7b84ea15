"""The shard of each cell of a step, derived from the key of the cell and the kind of step.

Rows with windows are on the shard of the grouping key. Every table of a step must be listed here: a table that is not
can be neither moved nor deleted.
"""

from __future__ import annotations

from functools import singledispatch

import pyarrow as pa

from potok.operators.exchange.reshard_cells import ByKey, Everywhere, Homes, InRuns, Lists, OnFirst, Packed, Placement
from potok.operators.joins.stream_table_join import own_rows
from potok.operators.patterns.neighbours import neighbours_of
from potok.operators.patterns.runs import runs_of, segments_of
from potok.operators.patterns.stored_runs import NUMBER
from potok.operators.tables.versions import versions_of
from potok.operators.windows.expiry import horizon_of, index_of, windows_of
from potok.operators.windows.windows import open_table, timers_of
from potok.records.keys import decode_keys, encode_keys
from potok.topology.inference.infer import Inferred
from potok.topology.nodes import (
    AgentTable,
    Aggregate,
    ForeignMatch,
    Match,
    Node,
    Ordered,
    Process,
    Session,
    Sliding,
    Suppress,
    TableAggregate,
    TableJoin,
    TableSource,
    ToTable,
    Window,
)
from potok.topology.nodes.joins import HistoryLookup, JoinKind, StreamJoin, TableLookup

Placements = dict[str, Placement]

TIME = 8
"""The bytes of an instant in a key."""


def placements(node: Node, inferred: Inferred) -> Placements:
    """Return the tables that a step may have, and how each is placed."""
    found = own_tables(node, inferred)
    if node.stateful and not isinstance(node, AgentTable | Aggregate | TableSource | ToTable):
        found[node.name] = ByKey(_without_window(inferred[node].window))
    return found


@singledispatch
def own_tables(node: Node, inferred: Inferred) -> Placements:  # noqa: ARG001 - every kind of node has the same two
    """Return the internal tables of a step, in addition to the table that it may be."""
    return {}


@own_tables.register
def _aggregate(node: Aggregate, inferred: Inferred) -> Placements:  # noqa: ARG001
    name, window = node.name, node.window
    if isinstance(window, Session | Sliding):
        inner = _without_window(window)
        return {
            name: ByKey(inner),
            open_table(name): ByKey(_itself),
            timers_of(name): Lists(_itself),
            index_of(name): Lists(inner),
        }
    if window is not None:
        return {windows_of(name): ByKey(_after_time), horizon_of(name): Everywhere()}
    return {name: ByKey(_itself)}


@own_tables.register(TableSource)
@own_tables.register(ToTable)
def _table(node: TableSource | ToTable, inferred: Inferred) -> Placements:  # noqa: ARG001
    name = node.name
    found: Placements = {name: ByKey(_itself)}
    if node.lifetime.ttl_ms is not None:
        found[f"{name}/since"] = ByKey(_after_time)
    if node.lifetime.history_ms is not None:
        found |= {versions_of(name): ByKey(_prefixed), f"{name}/by_time": ByKey(_after_time)}
    return found


@own_tables.register
def _suppress(node: Suppress, inferred: Inferred) -> Placements:
    homes = _row_homes(node, inferred)
    return {node.name: ByKey(homes), f"{node.name}/due": ByKey(lambda keys: homes(_after_time(keys)))}


@own_tables.register
def _table_join(node: TableJoin, inferred: Inferred) -> Placements:
    homes = _row_homes(node, inferred)
    return {f"{node.name}/sides": ByKey(homes), f"{node.name}/due": ByKey(lambda keys: homes(_after_time(keys)))}


@own_tables.register
def _table_aggregate(node: TableAggregate, inferred: Inferred) -> Placements:  # noqa: ARG001
    return {f"{node.name}/groups": ByKey(_itself)}


@own_tables.register
def _foreign_match(node: ForeignMatch, inferred: Inferred) -> Placements:  # noqa: ARG001
    return {f"{node.name}/by_key": ByKey(_prefixed), f"{node.name}/rights": ByKey(_itself)}


@own_tables.register
def _stream_join(node: StreamJoin, inferred: Inferred) -> Placements:  # noqa: ARG001
    keep_ms = node.window.keep_ms
    return {
        f"{node.name}/left": InRuns(keep_ms, marked=node.how is not JoinKind.INNER),
        f"{node.name}/right": InRuns(keep_ms, marked=node.how is JoinKind.OUTER),
    }


@own_tables.register
def _table_lookup(node: TableLookup, inferred: Inferred) -> Placements:  # noqa: ARG001
    return {own_rows(node.name): ByKey(_itself)}


@own_tables.register
def _history_lookup(node: HistoryLookup, inferred: Inferred) -> Placements:  # noqa: ARG001
    return {
        f"{node.name}/waiting": InRuns((node.grace_ms or 0) + 1, marked=True),
        f"{node.name}/versions": ByKey(_itself),
        f"{node.name}/versions/by_end": ByKey(_after_time),
    }


@own_tables.register
def _process(node: Process, inferred: Inferred) -> Placements:  # noqa: ARG001
    timers: Placements = {
        f"{node.name}/timers-by-key": ByKey(_itself),
        f"{node.name}/timers-by-time": ByKey(_after_time),
        f"{node.name}/timers-by-wall": ByKey(_after_time),
    }
    return timers | {node.cells_of(store): ByKey(_itself) for store, _ in node.stores}


@own_tables.register
def _agent_table(node: AgentTable, inferred: Inferred) -> Placements:  # noqa: ARG001
    names = [node.name] if node.window is None else [node.name, f"{node.name}/by_end"]
    if node.one_shard:
        return dict.fromkeys(names, OnFirst())
    inner = _without_window(node.window)
    homes = (inner, lambda keys: inner(_after_time(keys)))
    return {name: ByKey(home) for name, home in zip(names, homes, strict=False)}


@own_tables.register
def _ordered(node: Ordered, inferred: Inferred) -> Placements:
    return {f"{node.name}/waiting": Packed(windowed=inferred[node].window is not None)}


@own_tables.register
def _match(node: Match, inferred: Inferred) -> Placements:  # noqa: ARG001
    placed: Placements = {
        runs_of(node.name): ByKey(_itself),
        segments_of(runs_of(node.name)): ByKey(lambda keys: [key[:-NUMBER] for key in keys]),
        timers_of(node.name): Lists(_itself),
    }
    if node.looks_around:
        placed[neighbours_of(node.name)] = ByKey(_itself)
    return placed


def _itself(keys: list[bytes]) -> list[bytes]:
    return keys


def _after_time(keys: list[bytes]) -> list[bytes]:
    return [key[TIME:] for key in keys]


def _prefixed(keys: list[bytes]) -> list[bytes]:
    """Keys with the length of the shard's key as prefix."""
    return [key[4 : 4 + int.from_bytes(key[:4], "big")] for key in keys]


def _without_window(window: Window | None) -> Homes:
    """Keys that end with the start of a window and, where it is variable, with its end."""
    if window is None:
        return _itself
    width = 2 * TIME if isinstance(window, Session) else TIME
    return lambda keys: [key[:-width] for key in keys]


def _row_homes(node: Node, inferred: Inferred) -> Homes:
    """Keys of the rows of a table, as its downstream sees them: with windows, if it has any."""
    if inferred[node].window is None:
        return _itself
    whole = inferred[node].key
    inner: pa.DataType | None = None if whole is None else whole.field(0).type

    def homes(keys: list[bytes]) -> list[bytes]:
        grouped = [row["key"] for row in decode_keys(keys, whole)]
        return encode_keys(grouped if inner is None else pa.array(grouped, inner)).to_pylist() if keys else []

    return homes
