"""Find the fields of a topic's values that any step reads: only these are decoded."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from potok.events.rows import FORMAT
from potok.expressions.expr import ALL, Expr, fields
from potok.topology.graph import Topology
from potok.topology.inference.infer import Inferred
from potok.topology.inference.joins import fields_of_side
from potok.topology.nodes import (
    Aggregate,
    Annotate,
    Arm,
    Branch,
    Deliver,
    Filter,
    HistoryLookup,
    LookupKey,
    MapBatches,
    Match,
    Merge,
    Node,
    Ordered,
    Peek,
    Repartition,
    SelectKey,
    Session,
    Sink,
    Sliding,
    StreamJoin,
    StreamSource,
    TableLookup,
    TableSource,
    ToStream,
    ToTable,
)


def used_fields(topology: Topology, inferred: Inferred, source: Node) -> set[str] | None:
    """Return the fields of a source's values that any step reads; None means all of them."""
    used: set[str] = set()
    for node in topology:
        reads = _reads(inferred, source, node)
        if reads is None:
            return None
        used |= reads
    value = inferred[source].value
    # Fields that a step has added are not the source's.
    return used & {field.name for field in value} if value is not None and pa.types.is_struct(value) else used


def _reads(inferred: Inferred, source: Node, node: Node) -> set[str] | None:
    """Return what a node reads from the values of `source`, if they reach it unchanged."""
    if isinstance(node, TableSource) and node is source:
        return None
    if node is source:
        return set() if not inferred[node].exprs else _expr_fields(inferred[node].exprs)
    if not any(_carries(inferred, source, upstream) for upstream in node.upstreams):
        return set()
    if isinstance(node, Aggregate):
        plan = inferred[node].plan
        assert plan is not None
        tests = inferred[node].exprs
        counted = plan.kind == "count" and isinstance(node.window, Session | Sliding)
        if plan.native or counted:
            return _expr_fields([*(slot.expr for slot in plan.slots if slot.expr is not None), *tests])
        return _expr_fields([plan.selector, *tests])
    if isinstance(node, Sink):
        if node.events is not None or node.value_format == FORMAT:
            return None
        same_format = isinstance(source, StreamSource) and node.value_format in ("", source.value.format)
        return _expr_fields(inferred[node].exprs) if inferred[node.upstream].intact and same_format else None
    if isinstance(node, StreamJoin | TableLookup | HistoryLookup):
        return _joined_fields(inferred, source, node)
    if isinstance(node, Arm):
        return set()
    if isinstance(node, Merge):
        return set() if inferred[node].value is not None else None
    if isinstance(node, ToTable | Repartition | ToStream | Ordered | MapBatches | Match | Deliver):
        return None
    return _expr_fields(inferred[node].exprs)


def _joined_fields(inferred: Inferred, source: Node, node: Node) -> set[str] | None:
    """Return what a join reads from the sides that carry the values of `source`; rows of a table are stored
    whole.
    """
    used: set[str] = set()
    for index, upstream in enumerate(node.upstreams):
        if _carries(inferred, source, upstream):
            read = fields_of_side(inferred[node], index)
            if read is None or (index == 1 and not isinstance(node, StreamJoin)):
                return None
            used |= set(read)
    return used


def _carries(inferred: Inferred, source: Node, node: Node) -> bool:
    """Whether a node emits the values of a source unchanged."""
    if node is source:
        return True
    if not isinstance(node, Annotate | Filter | Branch | Arm | LookupKey | Peek | SelectKey | Merge | Repartition):
        return False
    return any(_carries(inferred, source, upstream) for upstream in node.upstreams)


def _expr_fields(exprs: Iterable[Expr | None]) -> set[str] | None:
    used: set[str] = set()
    for expr in exprs:
        if expr is None:
            return None
        read = fields(expr)
        if read is ALL:
            return None
        used |= read
    return used
