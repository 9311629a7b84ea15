"""Agents: the user's coroutines that process records, store tables and send to topics."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.topology.agents import AgentGroup
from potok.topology.nodes.node import Node
from potok.topology.nodes.windows import FixedWindow


@dataclass(frozen=True, slots=True, eq=False)
class Agents(Node):
    """Drives the agents of a group, record by record, in the order of their definition.

    Unless the group is spread, all records move to one shard, so that any agent can access any key of any
    table.
    """

    sources: tuple[Node, ...]
    agent_group: AgentGroup
    functions: tuple[Function, ...]

    @property
    def gathers(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return any(table.expires_ms is not None and not table.wall for table in self.agent_group.tables)

    @property
    def detail(self) -> str:
        names = ", ".join(agent.name for agent in self.agent_group.agents)
        how = "each key on its shard" if self.agent_group.spread else "one task, in order"
        return "; ".join((f"{names}: {how}", *self.agent_group.notes))


@dataclass(frozen=True, slots=True, eq=False)
class AgentTable(Node):
    """A table of agents, which write its cells directly; this node emits its changes."""

    upstream: Agents
    index: int

    @property
    def upstream_output(self) -> int:
        """Return its number among the outputs of the agents: tables follow topics."""
        return len(self.upstream.agent_group.topics) + self.index

    @property
    def window(self) -> FixedWindow | None:
        return self.upstream.agent_group.tables[self.index].window

    @property
    def one_shard(self) -> bool:
        return not self.upstream.agent_group.spread

    @property
    def cells(self) -> str:
        return "objects on one shard" if self.one_shard else "objects"

    @property
    def stateful(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True

    @property
    def detail(self) -> str:
        return str(self.window or "")


@dataclass(frozen=True, slots=True, eq=False)
class AgentSends(Node):
    """The records that agents send to one topic, already serialized, so that a serialization error is raised in
    the agent that sends.
    """

    upstream: Agents
    index: int

    @property
    def upstream_output(self) -> int:
        return self.index
