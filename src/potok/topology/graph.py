"""The topology: a directed acyclic graph of frozen nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from potok.topology.capture import Capture
from potok.topology.nodes import Node, Sink, StreamSource, TableSource

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True)
class Topology:
    """All steps of one query, each after its upstreams. `like` is the topology of which this one is a part: it
    decodes the same fields, so that the same records decode.
    """

    name: str
    nodes: tuple[Node, ...]
    like: Topology | None = None
    captures: tuple[Capture, ...] = field(default=(), repr=False)
    """The databases whose changes it reads."""

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def of_type(self, kind: type[N]) -> list[N]:
        return [node for node in self.nodes if isinstance(node, kind)]

    def downstreams(self, node: Node) -> list[Node]:
        return [other for other in self.nodes if node in other.upstreams]

    @property
    def sources(self) -> list[StreamSource | TableSource]:
        return [node for node in self.nodes if isinstance(node, StreamSource | TableSource)]

    @property
    def source_topics(self) -> list[str]:
        return sorted({source.topic for source in self.sources})

    @property
    def sink_topics(self) -> list[str]:
        return sorted({sink.topic for sink in self.of_type(Sink)})

    @property
    def tables(self) -> list[Node]:
        """Return the steps that store state and can be read as tables."""
        return [node for node in self.nodes if node.stateful]

    @property
    def keepers(self) -> list[Node]:
        """Return the steps that have cells, whether or not they can be read as tables."""
        return [node for node in self.nodes if node.keeps]

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.name}-dead-letters"

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def held_back_ms(self, node: Node) -> int:
        """Return how far the records that reach a step may be behind the stream time of its topics: the sum of
        upstream delays.
        """
        held: dict[Node, int] = {}
        for other in self.nodes:
            held[other] = max((held[up] + up.holds_back_ms for up in other.upstreams), default=0)
            if other is node:
                break
        return held[node]

    def upstream_topics(self, node: Node) -> set[str]:
        """Return the topics whose records can reach a step; their watermarks close its windows."""
        if isinstance(node, StreamSource | TableSource):
            return {node.topic}
        return set().union(*(self.upstream_topics(upstream) for upstream in node.upstreams))
