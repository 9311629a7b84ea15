"""Inference for agents."""

from __future__ import annotations

import pyarrow as pa

from potok.topology.inference.step import Step, infer_step, windowed_key
from potok.topology.nodes import Agents, AgentSends, AgentTable


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
