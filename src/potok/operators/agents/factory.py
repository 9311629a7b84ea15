"""Agents, their output, and their tables."""

from __future__ import annotations

from potok.operators.agents.agents import DriveAgents
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, sender_of
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.exchange.repartition import Exchange, ExchangeDynamic, GatherRecords
from potok.topology.nodes import Agents, AgentSends, AgentTable


@post_shuffle_of(Agents)
def agents(node: Agents, factory: OperatorFactory) -> Operator:
    topology = factory.plan.topology
    tables = [table for table in topology.of_type(AgentTable) if table.upstream is node]
    emitting = tuple(table.name for table in tables if topology.downstreams(table))
    return DriveAgents(
        node, factory.task, factory.state, factory.watermark(node), factory.spec.input_partitions, emitting
    )


@sender_of(Agents)
def to_agents(node: Agents, factory: OperatorFactory, index: int, name: str) -> Operator:  # noqa: ARG001 - as all senders
    if node.agent_group.spread:
        dynamic = all(table.key_type is None for table in node.agent_group.tables)
        kind = ExchangeDynamic if dynamic else Exchange
        return kind(name, factory.task, factory.shuffle_writer, factory.level(node), factory.shards, step=node.step)
    return GatherRecords(name, factory.task, factory.shuffle_writer, factory.level(node), node.step)


@wiring_of(AgentTable)
def wire_table(node: AgentTable, wiring: Wiring) -> None:
    """Place no second copy of the rows: agents write the cells of their tables themselves."""
    wiring.step(node, materialised=False)


@post_shuffle_of(AgentSends, AgentTable)
def output(node: AgentSends | AgentTable, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)
