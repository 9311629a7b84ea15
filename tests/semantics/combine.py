"""All cases of a family as one topology, so that Spark runs them in the same batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from potok.topology.graph import Topology
from potok.topology.nodes import Node


def combined(name: str, parts: Mapping[str, Topology]) -> Topology:
    """The steps, tables and topics of each part under its prefix; nothing of one part reaches another."""
    nodes: list[Node] = []
    for prefix, topology in parts.items():
        renamed: dict[Node, Node] = {}
        for node in topology:
            renamed[node] = _renamed(node, prefix, renamed)
            nodes.append(renamed[node])
    return Topology(name, tuple(nodes))


def _renamed(node: Node, prefix: str, renamed: Mapping[Node, Node]) -> Node:
    changes: dict[str, Any] = {"name": prefix + node.name}
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "topic":
            changes["topic"] = prefix + value
        elif isinstance(value, Node):
            changes[field.name] = renamed[value]
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            changes[field.name] = tuple(renamed[item] for item in value)
    return replace(node, **changes)
