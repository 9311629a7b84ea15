"""Inference for processors and agents."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from potok.topology.inference.step import Step, arrow_of, infer_step, windowed_key
from potok.topology.nodes import (
    Agents,
    AgentSends,
    AgentTable,
    AggregateRoot,
    Channel,
    Ordered,
    Process,
    Saga,
    StoreTable,
)


@infer_step.register(Process)
@infer_step.register(Saga)
def _process(node: Process, ups: list[Step]) -> Step:
    up = ups[0]
    return Step(
        arrow_of(node.key_schema) if node.key_schema is not None else up.key,
        arrow_of(node.schema),
        (None,),
        f"a saga runs as Python; {node.detail}" if isinstance(node, Saga) else "a processor runs as Python",
        rekeyed=up.rekeyed or not node.fixed_key,
        sharded=node.fixed_key,
        order_dependent=up.rekeyed and bool(node.stores or node.processor.has_timers),
        topics=up.topics,
    )


@infer_step.register
def _aggregate_root(node: AggregateRoot, ups: list[Step]) -> Step:
    return replace(_process(node, ups), value=None, order_dependent=False)


@infer_step.register
def _channel(node: Channel, ups: list[Step]) -> Step:
    return replace(ups[0], value=arrow_of(node.schema), exprs=(), reason="", order_dependent=False)


@infer_step.register
def _store_table(node: StoreTable, ups: list[Step]) -> Step:  # noqa: ARG001
    return Step(ups[0].key, None, rekeyed=True, sharded=True, topics=ups[0].topics)


@infer_step.register
def _ordered(node: Ordered, ups: list[Step]) -> Step:  # noqa: ARG001
    up = ups[0]
    return Step(up.key, up.value, sharded=True, topics=up.topics)


@infer_step.register
def _agents(node: Agents, ups: list[Step]) -> Step:
    topics = frozenset[str]().union(*(up.topics for up in ups))
    return Step(None, None, (None,), f"agents run as Python; {node.detail}", rekeyed=True, topics=topics)


@infer_step.register
def _agent_table(node: AgentTable, ups: list[Step]) -> Step:
    key = windowed_key(node.upstream.agent_group.tables[node.index].key_type, node.window)
    sharded = node.upstream.agent_group.spread and node.window is None
    return Step(key, None, rekeyed=True, sharded=sharded, window=node.window, topics=ups[0].topics)


@infer_step.register
def _agent_sends(node: AgentSends, ups: list[Step]) -> Step:  # noqa: ARG001
    return Step(pa.binary(), pa.binary(), rekeyed=True, topics=ups[0].topics)
