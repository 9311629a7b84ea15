"""Inference for joins of streams with streams and with tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from potok.errors import Location, TopologyError
from potok.expressions.expr import ALL, Expr, TupleExpr, fields
from potok.expressions.function import Function
from potok.expressions.tracing.trace import Argument, Traced, trace
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.topology.inference.step import Step, arrow_of, infer_step, trace_in
from potok.topology.nodes.joins import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    LookupKey,
    StreamJoin,
    TableLookup,
    TableRecords,
)
from potok.topology.nodes.node import Node
from potok.topology.nodes.retention import Lifetime
from potok.topology.nodes.sources import TableSource
from potok.topology.nodes.tables import TableFilter, TableMapValues, ToTable


class KeysDiffer(TopologyError):
    """A join of two sides whose key types differ, so that no keys are equal."""

    def __init__(self, node: Node, left: Step, right: Step) -> None:
        names = [upstream.name for upstream in node.upstreams]
        super().__init__(
            f'cannot join "{names[0]}" with "{names[1]}": the keys of the one are {_render(left.key)}, '
            f"of the other {_render(right.key)}",
            hint=_key_hint(left, right),
            at=node.at,
        )


class WindowedTable(TopologyError):
    """A join of a stream with a windowed table, whose keys contain a window."""

    def __init__(self, node: Node, table: str, at: Location | None) -> None:
        super().__init__(
            f'cannot join "{node.upstreams[0].name}" with the windowed table "{table}": '
            "its keys contain the start and the end of a window",
            hint="turn it into a stream and give that another key: table.to_stream().select_key(...).to_table()",
            at=at,
        )


def _render(type_: pa.DataType | None) -> str:
    return "dynamic" if type_ is None else str(type_)


def _key_hint(left: Step, right: Step) -> str:
    declared = next((step.key for step in (left, right) if step.key is not None), None)
    if left.key is None or right.key is None:
        schema = declared_schema(declared)
        text = schema.ddl() if schema else declared
        return f'declare the type of the other key: join(..., on=..., key="{text}"), or select_key(..., key="{text}")'
    return "give one side a key of the same type: select_key(lambda k, v: str(k), key=str)"


def _check_keys(node: Node, left: Step, right: Step) -> None:
    if left.key != right.key:
        raise KeysDiffer(node, left, right)


def trace_joiner(
    function: Function | None, schema: Schema | None, key: pa.DataType | None, left: Step, right: Step
) -> tuple[Expr | None, pa.DataType | None, str]:
    """Return the expression of a joiner, the type of its results, and the reason if it has no expression."""
    declared = arrow_of(schema)
    if function is None:
        both_typed = left.value is not None and right.value is not None
        pair = pa.struct([("left", left.value), ("right", right.value)]) if both_typed else None
        return None, declared or pair, ""
    if left.value is None or right.value is None:
        return None, declared, "the values are dynamic"
    arguments = (Argument("key", key), Argument("left", left.value), Argument("right", right.value))
    try:
        traced = trace(function, arguments[3 - function.arity :])
    except TopologyError as error:
        error.at = function.location or error.at
        raise
    if not isinstance(traced, Traced):
        return None, declared, traced.reason
    if isinstance(traced.expr, TupleExpr):
        return None, declared, "it returns a tuple"
    if schema is not None and traced.expr.type != schema.arrow:
        return None, declared, f"the declared type {schema.ddl()} differs from the traced one"
    return traced.expr, traced.expr.type, ""


def fields_of_side(step: Step, index: int) -> tuple[str, ...] | None:
    """Return the fields of one side's values that the joiner of a step reads; None means all."""
    expr = step.exprs[0] if step.exprs else None
    if expr is None:
        return None
    read = fields(expr, ("left", "right")[index])
    return None if read is ALL else tuple(sorted(read))


@infer_step.register
def _stream_join(node: StreamJoin, ups: list[Step]) -> Step:
    left, right = ups
    _check_keys(node, left, right)
    expr, value, reason = trace_joiner(node.function, node.schema, left.key, left, right)
    return Step(left.key, value, (expr,), reason, rekeyed=True, sharded=True, topics=left.topics | right.topics)


@infer_step.register
def _lookup_key(node: LookupKey, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0])
    if expr is not None and node.key_schema is not None and expr.type != node.key_schema.arrow:
        expr, reason = None, "the declared type of the key differs from the traced one"
    key = expr.type if expr is not None else arrow_of(node.key_schema)
    return replace(
        ups[0],
        key=key,
        exprs=(expr,),
        reason=reason,
        sharded=False,
        plan=None,
        order_dependent=False,
        window=None,
        home=(ups[0].key,),
    )


@infer_step.register(TableLookup)
@infer_step.register(HistoryLookup)
def _lookup(node: TableLookup | HistoryLookup, ups: list[Step]) -> Step:
    stream, table = ups
    if table.window is not None and (table.key is None or table.key != stream.key):
        raise WindowedTable(node, node.table.name, node.at)
    _check_keys(node, stream, table)
    waits = isinstance(node, HistoryLookup) and node.grace_ms is not None
    (key,) = stream.home or (stream.key,)
    expr, value, reason = trace_joiner(node.function, node.schema, key, stream, table)
    return replace(
        stream,
        key=key,
        home=(),
        value=value,
        exprs=(expr,),
        reason=reason,
        intact=False,
        sharded=not stream.home,
        plan=None,
        # Without a wait, the current row is read. With a wait, versions are read, but those of a computed table
        # depend on batch boundaries.
        order_dependent=not waits or node.table.is_table,
        rekeyed=stream.rekeyed or waits,
        window=None,
        topics=stream.topics | table.topics,
    )


@infer_step.register
def _table_records(node: TableRecords, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(), reason="", sharded=False)


@infer_step.register
def _history_filter(node: HistoryFilter, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.predicate, ups[0])
    return replace(ups[0], exprs=(expr,), reason=reason, plan=None, order_dependent=False)


@infer_step.register
def _history_map_values(node: HistoryMapValues, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0])
    if expr is not None and node.schema is not None and expr.type != node.schema.arrow:
        expr, reason = None, f"the declared type {node.schema.ddl()} differs from the traced one"
    value = expr.type if expr is not None else arrow_of(node.schema)
    return replace(ups[0], value=value, exprs=(expr,), reason=reason, plan=None, order_dependent=False, intact=False)


def projected(type_: pa.DataType | None, fields_read: tuple[str, ...] | None) -> pa.DataType | None:
    """Return the type of the fields that a joiner reads from a value."""
    if fields_read is None or type_ is None:
        return type_
    return pa.struct([type_.field(name) for name in fields_read]) if fields_read else pa.null()


def readable_rows(node: TableLookup, steps: Mapping[Node, Step]) -> str | None:
    """Return the name of a table whose cells store its rows under their keys as readers see them; other tables are
    copied.
    """
    table = node.table
    if isinstance(table, TableFilter | TableMapValues):
        return table.name if table.kept and steps[table].window is None else None
    if not isinstance(table, TableSource | ToTable) or table.lifetime != Lifetime():
        return None
    by_time = isinstance(table, ToTable) and steps[table.upstream].rekeyed
    return None if by_time else table.name


def join_layout(node: StreamJoin | TableLookup | HistoryLookup, steps: Mapping[Node, Step]) -> dict[str, str]:
    """Return what decides the layout of the cells of a join: the stored fields of each side depend on what the
    joiner reads.
    """
    step, (left, right) = steps[node], node.upstreams
    types = [projected(steps[up].value, fields_of_side(step, index)) for index, up in enumerate((left, right))]
    if isinstance(node, StreamJoin):
        cells = f"{node.how}, left {_render(types[0])}, right {_render(types[1])}"
    elif isinstance(node, HistoryLookup):
        cells = f"waiting {_render(types[0])}, versions {_render(steps[right].value)}"
        cells += f", for keys {_render(steps[left].home[0])}" if steps[left].home else ""
    else:
        cells = "none" if readable_rows(node, steps) else f"copies {_render(steps[right].value)}"
    return {"kind": node.kind, "key": _render(steps[left].key), "cells": cells}
