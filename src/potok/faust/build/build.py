"""Build a topology from an app: sources, groups of agents, their tables, and a sink for each topic they send to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from potok.dsl.inputs.serdes import field_function
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.faust.agent import Agent
from potok.faust.agent_start import StartAgent
from potok.faust.build.plans import Plan, keep_together, once, plan_of
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.replies import replies_topic, reply_failure
from potok.faust.messaging.topic import Topic
from potok.faust.records.fields import FieldDescriptor
from potok.faust.tables.agent_tables import beside_tables, resolve_tables, source_name, waiting_for
from potok.faust.tables.tables import Table
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.topology.agents import AgentGroup, AgentPart, TablePart, TopicPart
from potok.topology.graph import Topology
from potok.topology.nodes import (
    Agents,
    AgentSends,
    AgentTable,
    Node,
    SelectKey,
    Sink,
    StreamSource,
    TableSource,
    Timestamps,
    ToStream,
)

if TYPE_CHECKING:
    from potok.faust.app import App

TOGETHER, SPREAD = "agents", "agents-by-key"


class Build:
    """Builds the topology of an app once."""

    def __init__(self, app: App, made: Sequence[Node]) -> None:
        nodes = beside_tables(made, app.tables)
        self._app, self._waiting = app, waiting_for(nodes)
        self._nodes = [node for node in nodes if node not in self._waiting]
        self._sources = {node.topic: node for node in nodes if isinstance(node, StreamSource)}
        self._read = {node.topic for node in nodes if isinstance(node, StreamSource | TableSource)}
        self._by_key: list[tuple[Any, SelectKey]] = []

    def topology(self) -> Topology:
        plans = [plan_of(agent) for agent in self._app.agents.values()]
        keep_together(plans)
        together = [plan for plan in plans if not plan.spread]
        spread = [plan for plan in plans if plan.spread]
        owned = once(table for plan in spread for table in plan.tables)
        rest = [table for table in self._app.tables.values() if all(table is not other for other in owned)]
        for plan in plans:
            self._forward(plan)
        if together:
            self._agent_group(TOGETHER, together, rest, owned, plans, spread=False)
        if spread:
            self._agent_group(SPREAD, spread, owned, rest, plans, spread=True)
        tables = {node.name: node for node in self._nodes if isinstance(node, AgentTable)}
        self._nodes += resolve_tables(self._waiting, tables)
        return Topology(self._app.id, tuple(self._nodes))

    def _add(self, node: Any) -> Any:
        self._nodes.append(node)
        return node

    def _source(self, topic: Topic, name: str) -> StreamSource:
        if name not in self._sources:
            key, value = topic.serdes()
            called = source_name(name, self._app.tables)
            made = StreamSource(called, topic.at, name, key, value, Timestamps(), partitions=topic.partitions)
            self._sources[name] = self._add(made)
        return self._sources[name]

    def _forward(self, plan: Plan) -> None:
        """Write records that go through another topic to it first."""
        topic: Any = plan.agent.topic
        for step in plan.through:
            for name in topic.names:
                sink = f"{plan.agent.name}.through.{step.name}.{name}"
                self._add(Sink(sink, plan.agent.at, self._source(topic, name), step.name))
            topic = step

    def _agent_group(
        self, name: str, plans: list[Plan], tables: list[Table], others: list[Table], all_: list[Plan], *, spread: bool
    ) -> None:
        sources: list[Node] = []
        parts = tuple(self._agent(plan, sources) for plan in plans)
        key_type = _key_type(plans) if spread else None
        topics = self._topics(plans, all_)
        agent_group = AgentGroup(
            self._app.id,
            parts,
            tuple(_part(table, key_type) for table in tables),
            tuple(TopicPart(topic.name) for topic in topics),
            spread,
            tuple(plan.note for plan in plans if plan.note),
            tuple((table.name, _why(spread)) for table in others),
        )
        functions = tuple(_function(plan.agent) for plan in plans)
        agents = self._add(Agents(name, plans[0].agent.at, tuple(sources), agent_group, functions))
        for index, table in enumerate(tables):
            kept = self._add(AgentTable(table.name, table.at, agents, index))
            if table.changelog:
                self._changes(table, kept)
        for index, topic in enumerate(topics):
            sent = self._add(AgentSends(f"{name}.to.{topic.name}", topic.at, agents, index))
            self._sink(topic, sent, name)

    def _sink(self, topic: Topic, sent: AgentSends, agent_group: str) -> None:
        policy = "compact" if topic.compacting else "delete"
        self._add(
            Sink(
                f"{agent_group}.sink.{topic.name}",
                topic.at,
                sent,
                topic.name,
                "raw",
                "raw",
                topic.partitions,
                retention_ms=topic.retention_ms,
                cleanup_policy=policy,
            )
        )

    def _changes(self, table: Table, kept: AgentTable) -> None:
        """Write the changes of a table to its topic; keys are JSON, since they may be anything."""
        window = kept.window
        key_format = "json" if window is None else f"windowed;size_ms={window.size_ms};inner=json"
        policy = "compact" if window is None else "delete"
        changes = self._add(ToStream(f"{table.name}.changes", table.at, kept))
        sink = f"{table.name}.changelog"
        self._add(Sink(sink, table.at, changes, table.changelog, key_format, "json", cleanup_policy=policy))

    def _agent(self, plan: Plan, sources: list[Node]) -> AgentPart:
        agent, inputs = plan.agent, list[tuple[int, Any]]()
        start = StartAgent(self._app.id, agent.fun, agent.sinks)
        if isinstance(agent.topic, Channel):
            taken = agent.topic.name
            return AgentPart(
                agent.name, start, (), agent.on_error, agent.timeout_s, taken, concurrency=agent.concurrency
            )
        taken_topics = [(topic, name) for topic in (plan.source, *plan.other_topics) for name in topic.names]
        for topic, name in taken_topics:
            node: Node = self._source(topic, name)
            if plan.key is not None:
                node = self._keyed(node, plan, name)
            if node not in sources:
                sources.append(node)
            inputs.append((sources.index(node), topic.revive()))
        return AgentPart(
            agent.name,
            start,
            tuple(inputs),
            agent.on_error,
            agent.timeout_s,
            concurrency=agent.concurrency,
            on_failed=partial(reply_failure, self._app.id) if agent.yields else None,
        )

    def _keyed(self, source: Node, plan: Plan, name: str) -> Node:
        """Return the records of a topic under the key of an agent, which other agents may share."""
        chosen = plan.key.field if isinstance(plan.key, FieldDescriptor) else plan.key
        for other, node in self._by_key:
            if (other is chosen or (isinstance(chosen, str) and other == chosen)) and node.upstream is source:
                return node
        function, schema = _key_function(plan)
        node = SelectKey(f"{plan.agent.name}.key.{name}", plan.agent.at, source, function, schema)
        self._by_key.append((chosen, node))
        self._add(node)
        return node

    def _topics(self, plans: list[Plan], all_: list[Plan]) -> list[Topic]:
        """Return the topics a group may send to: those that static analysis finds in its agents, and all topics that no
        agent reads.
        """
        taken = set[str]().union(*(plan.taken for plan in all_))
        seen = [topic for plan in plans for topic in plan.topics]
        free = [topic for topic in self._app.topics if topic.name not in taken | self._read]
        if any(plan.agent.yields for plan in plans):
            free.append(Topic(self._app, (replies_topic(self._app.id),)))
        sends = [topic for topic in (*seen, *free) if topic.name not in taken or _sends(topic, plans)]
        return list({topic.name: topic for topic in sends}.values())


def _sends(topic: Topic, plans: list[Plan]) -> bool:
    """Whether an agent mentions a topic that agents read: it may send to it, or cast to its agents."""
    return any(other.name == topic.name for plan in plans for other in plan.topics)


def _why(spread: bool) -> str:
    here = "spread by key" if spread else "not spread"
    return f"this agent is {here}, and those that use the table are {'not' if spread else 'spread'}"


def _function(agent: Agent) -> Function:
    return Function.of(agent.fun, (1,), "write async def process(stream): ...")


def _part(table: Table, key_type: pa.DataType | None) -> TablePart:
    part = (table.windowed or table).part(key_type)
    if key_type is not None and part.key_type != key_type:
        raise TopologyError(
            f'table "{table.name}" has keys of type {part.key_type}, and its agents are spread by {key_type}',
            hint="leave key_type= out, or spread the agents by a field of that type",
            at=table.at,
        )
    return part


def _key_function(plan: Plan) -> tuple[Function, Schema | None]:
    key = plan.key
    if isinstance(key, FieldDescriptor):
        return field_function(key.field, plan.agent.at), declared_schema(key.type)
    if isinstance(key, str):
        return field_function(key, plan.agent.at), None
    return Function.of(key, (1,), "write key=lambda order: ..., or key=Order.user_id"), None


def _key_type(plans: list[Plan]) -> pa.DataType | None:
    """Return the key type of spread agents, which is that of the tables they share."""
    schemas = [_key_function(plan)[1] for plan in plans]
    types = {None if schema is None else schema.arrow for schema in schemas}
    if len(types) > 1:
        first = plans[0].agent
        raise TopologyError(
            "agents are spread by keys of several types", hint="spread them by fields of one type", at=first.at
        )
    return types.pop()
