"""Find the fields of a topic's values that any step reads: only these are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

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


def used_fields(topology: Topology, inferred: Inferred) -> dict[StreamSource | TableSource, set[str] | None]:
    """Return the fields of each source's values that any step reads; None means all of them."""
    readers: dict[Node, list[Node]] = {}
    for node in topology:
        for upstream in node.upstreams:
            readers.setdefault(upstream, []).append(node)
    return {source: _used_of(source, inferred, readers) for source in topology.sources}


def _used_of(source: Node, inferred: Inferred, readers: Mapping[Node, list[Node]]) -> set[str] | None:
    carriers = _carriers(source, readers)
    used: set[str] = set()
    for node in dict.fromkeys([source, *(reader for carrier in carriers for reader in readers.get(carrier, ()))]):
        reads = _reads(inferred, source, node, carriers)
        if reads is None:
            return None
        used |= reads
    value = inferred[source].value
    # Fields that a step has added are not the source's.
    return used & {field.name for field in value} if value is not None and pa.types.is_struct(value) else used


def _carriers(source: Node, readers: Mapping[Node, list[Node]]) -> set[Node]:
    """Return the nodes that emit the values of a source unchanged."""
    carriers, ahead = {source}, [source]
    while ahead:
        found = [
            node
            for node in readers.get(ahead.pop(), ())
            if node not in carriers
            and isinstance(node, Annotate | Filter | Branch | Arm | LookupKey | Peek | SelectKey | Merge | Repartition)
        ]
        carriers.update(found)
        ahead.extend(found)
    return carriers


def _reads(inferred: Inferred, source: Node, node: Node, carriers: Set[Node]) -> set[str] | None:
    """Return what a node reads from the values of `source`, which reach it through `carriers`."""
    if isinstance(node, TableSource) and node is source:
        return None
    if node is source:
        return set() if not inferred[node].exprs else _expr_fields(inferred[node].exprs)
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
        return _joined_fields(inferred, node, carriers)
    if isinstance(node, Arm):
        return set()
    if isinstance(node, Merge):
        return set() if inferred[node].value is not None else None
    if isinstance(node, ToTable | Repartition | ToStream | Ordered | MapBatches | Match | Deliver):
        return None
    return _expr_fields(inferred[node].exprs)


def _joined_fields(inferred: Inferred, node: Node, carriers: Set[Node]) -> set[str] | None:
    """Return what a join reads from the sides that are carriers; rows of a table are stored whole."""
    used: set[str] = set()
    for index, upstream in enumerate(node.upstreams):
        if upstream in carriers:
            read = fields_of_side(inferred[node], index)
            if read is None or (index == 1 and not isinstance(node, StreamJoin)):
                return None
            used |= set(read)
    return used


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
