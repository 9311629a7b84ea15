"""All cases of a family as one topology, so that Spark runs them in the same batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from potok.patterns.aggregates.messages import writer_of
from potok.patterns.aggregates.processor import AggregateProcessor
from potok.topology.graph import Topology
from potok.topology.nodes import Node
from potok.topology.nodes.sources import OwnRecords


def combined(name: str, parts: Mapping[str, Topology]) -> Topology:
    """The steps, tables and topics of each part under its prefix; nothing of one part reaches another."""
    nodes: list[Node] = []
    for prefix, topology in parts.items():
        renamed: dict[Node, Node] = {}
        for node in topology:
            renamed[node] = _renamed(node, prefix, renamed, name)
            nodes.append(renamed[node])
    return Topology(name, tuple(nodes))


def _renamed(node: Node, prefix: str, renamed: Mapping[Node, Node], query: str) -> Node:
    changes: dict[str, Any] = {"name": prefix + node.name}
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("topic", "events_topic") and value:
            changes[field.name] = prefix + value
        elif isinstance(value, OwnRecords):
            aggregate = value.value.decode().partition("/")[2]
            changes[field.name] = replace(value, query=query, value=writer_of(query, prefix + aggregate))
        elif isinstance(value, AggregateProcessor):
            changes[field.name] = _renamed_aggregate(value, prefix, query)
        elif isinstance(value, Node):
            changes[field.name] = renamed[value]
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            changes[field.name] = tuple(renamed[item] for item in value)
    return replace(node, **changes)


def _renamed_aggregate(processor: AggregateProcessor, prefix: str, query: str) -> AggregateProcessor:
    given = processor.definition
    definition = replace(given, name=prefix + given.name, events_topic=prefix + given.events_topic)
    options = processor._envelope, processor._foreign, processor._keep_ms
    made = AggregateProcessor(definition, query, *options)
    made.forwards = processor.forwards
    return made
