"""Where records go."""

from __future__ import annotations

from dataclasses import dataclass

from potok.expressions.function import Function
from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Sink(Node):
    """Write to a topic. A format left empty follows from the type of what is written."""

    upstream: Node
    topic: str
    key_format: str = ""
    value_format: str = ""
    partitions: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Foreach(Node):
    """Call `action` for each record; nothing comes after it."""

    upstream: Node
    action: Function
