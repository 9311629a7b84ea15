"""Tables of agents in the DSL: a placeholder step until the agents are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from potok.errors import TopologyError
from potok.topology.nodes import Node, StreamSource
from potok.topology.nodes.windows import FixedWindow


@dataclass(frozen=True, slots=True, eq=False)
class KeptByAgents(Node):
    """The placeholder of the table of this name."""

    window: FixedWindow | None = None

    @property
    def stateful(self) -> bool:
        return True

    @property
    def is_table(self) -> bool:
        return True


class NobodyKeeps(TopologyError):
    """A table that is used in the DSL, in an app without agents."""

    def __init__(self, node: Node) -> None:
        super().__init__(
            f'no agent writes table "{node.name}"', hint="write an agent that does: @app.agent(topic)", at=node.at
        )


def waiting_for(nodes: Sequence[Node]) -> list[Node]:
    """Return the placeholders of tables of agents, and all downstream steps."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, KeptByAgents) or any(upstream in found for upstream in node.upstreams):
            found.append(node)
    return found


def resolve_tables(nodes: Sequence[Node], tables: Mapping[str, Node]) -> list[Node]:
    """Return the same steps over the tables themselves."""
    known: dict[Node, Node] = {}
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, KeptByAgents):
            if node.name not in tables:
                raise NobodyKeeps(node)
            known[node] = tables[node.name]
        else:
            known[node] = replace(node, **_changed(node, known))
            made.append(known[node])
    return made


def source_name(topic: str, tables: Collection[str]) -> str:
    """Return the name of the step that reads a topic: that of the topic, unless a table has it."""
    return f"{topic}.topic" if topic in tables else topic


def beside_tables(nodes: Sequence[Node], tables: Collection[str]) -> list[Node]:
    """Return the same steps, with sources that have the name of a table renamed: topics and tables may share
    names.
    """
    known: dict[Node, Node] = {}
    for node in nodes:
        alike = isinstance(node, StreamSource) and node.name in tables
        named = {"name": source_name(node.name, tables)} if alike else {}
        changes = named | _changed(node, known)
        known[node] = replace(node, **changes) if changes else node
    return list(known.values())


def _changed(node: Node, known: Mapping[Node, Node]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node) and value in known:
            found[field.name] = known[value]
        elif isinstance(value, tuple) and any(isinstance(item, Node) and item in known for item in value):
            found[field.name] = tuple(known.get(item, item) if isinstance(item, Node) else item for item in value)
    return found
