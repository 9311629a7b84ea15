"""Analyse the agents of an app before it is built: what each uses, and which of them run together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from potok.faust.agent import Agent
from potok.faust.build.discover import used_objects
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.topic import Topic
from potok.faust.tables.tables import Table
from potok.faust.tables.windowed import WindowedTable

KINDS = (Table, WindowedTable, Topic, Channel, Agent)


@dataclass
class Plan:
    """The analysis of an agent: the topics it reads, the key it is spread by, what it uses; and why it is not
    spread.
    """

    agent: Agent
    key: Any
    tables: list[Table]
    channels: list[Channel]
    topics: list[Topic]
    through: list[Topic] = field(default_factory=list)
    other_topics: list[Topic] = field(default_factory=list)
    """Topics that it combines with its own."""
    note: str = ""

    @property
    def spread(self) -> bool:
        return self.key is not None

    @property
    def source(self) -> Topic:
        found = self.through[-1] if self.through else self.agent.topic
        assert isinstance(found, Topic)
        return found

    @property
    def taken(self) -> set[str]:
        """Return the topics whose records it reads, including intermediate ones."""
        other_topics = {name for topic in self.other_topics for name in topic.names}
        own = self.agent.topic
        return other_topics if isinstance(own, Channel) else {*own.names, *self.source.names, *other_topics}

    @property
    def shared(self) -> list[Table | Channel]:
        """Return what it shares with other agents, which have to run with it."""
        return [*self.tables, *self.channels]


def plan_of(agent: Agent) -> Plan:
    found = _used(agent)
    tables = [item.table if isinstance(item, WindowedTable) else item for item in (*agent.tables, *found)]
    topics = [*agent.sinks, *agent.sends, *found]
    channels = [item for item in (agent.topic, *agent.sinks, *found) if isinstance(item, Channel)]
    plan = Plan(agent, agent.key, once(item for item in tables if isinstance(item, Table)), once(channels), [])
    named = [item for item in topics if isinstance(item, Topic | Agent | str)]
    if isinstance(agent.topic, Topic):
        plan.other_topics = list(agent.topic.other_topics)
    plan.topics = once(topic for item in named if isinstance(topic := _topic(agent, item), Topic))
    for verb, chosen in agent.moves():
        if verb == "group_by":
            plan.key = chosen
        elif verb == "through":
            plan.through.append(_topic(agent, chosen))
        elif verb == "combine":
            plan.other_topics.append(_topic(agent, chosen))
        elif isinstance(topic := _topic(agent, chosen), Topic):
            plan.topics = once([*plan.topics, topic])
    return plan


def _used(agent: Agent) -> list[Any]:
    """Return what an agent uses: in its own code, in its sinks and error handler, and in the callbacks for closed
    windows of its tables.
    """
    own = [sink for sink in agent.sinks if not isinstance(sink, KINDS)]
    ahead: list[Any] = [agent.fun, *own, agent.on_error, *agent.tables]
    found: list[Any] = []
    while ahead:
        for item in used_objects(ahead.pop(0), KINDS, type(agent.app)):
            if all(item is not other for other in found):
                found.append(item)
                table = item.table if isinstance(item, WindowedTable) else item
                if isinstance(table, Table) and table.on_window_close is not None:
                    ahead.append(table.on_window_close)
    return found


def _topic(agent: Agent, given: Any) -> Any:
    if isinstance(given, Agent):
        return given.topic
    return (
        agent.app.topic(given, value_type=getattr(agent.topic, "value_type", None)) if isinstance(given, str) else given
    )


def keep_together(plans: list[Plan]) -> None:
    """An agent that shares a table with one that is not spread is not spread either."""
    changed = True
    while changed:
        changed = False
        fixed = {id(item): plan.agent.name for plan in plans if not plan.spread for item in plan.shared}
        for plan in plans:
            shared = [item for item in plan.shared if id(item) in fixed]
            if plan.spread and shared:
                other = fixed[id(shared[0])]
                plan.key = None
                plan.note = (
                    f'{plan.agent.name} is not spread: it shares {_kind(shared[0])} "{shared[0].name}" with {other}'
                )
                changed = True


def _kind(item: Table | Channel) -> str:
    return "table" if isinstance(item, Table) else "channel"


def once(items: Any) -> list[Any]:
    return list({id(item): item for item in items}.values())
