"""Check a topology before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from potok.errors import Location, TopologyError
from potok.topology.graph import Topology
from potok.topology.nodes import (
    Agents,
    AgentSends,
    AggregateRoot,
    Channel,
    Deliver,
    Foreach,
    HistoryLookup,
    Node,
    Sink,
    StreamSource,
    TableLookup,
    TableSource,
)

NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,200}")


class EmptyTopology(TopologyError):
    """A builder without a source."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'topology "{name}" reads no topic', hint='start with builder.stream("orders") or builder.table("users")'
        )


class NothingStored(TopologyError):
    """A topology with sources alone: no sink, no table, no action."""

    def __init__(self, name: str, at: Location | None) -> None:
        super().__init__(
            f'topology "{name}" has no result: nothing is written and no table is kept',
            hint='end a stream with .to("topic"), or keep a table with .count(name="...")',
            at=at,
        )


class DuplicateName(TopologyError):
    """Two steps with the same name."""

    def __init__(self, node: Node, first: Node) -> None:
        first_location = f" (first at {first.at})" if first.at else ""
        super().__init__(
            f'two steps are called "{node.name}"{first_location}',
            hint='state is found by the name of its step: pass another one, for example name="order_counts"',
            at=node.at,
        )


class BadName(TopologyError):
    """A name that cannot be part of a path or a topic."""

    def __init__(self, what: str, name: str, at: Location | None) -> None:
        super().__init__(
            f'{what} "{name}" has characters that a name cannot have',
            hint="use letters, digits, dots, dashes and underscores, at most 200 of them",
            at=at,
        )


class ReadsItsOwnOutput(TopologyError):
    """A topic that is both read and written."""

    def __init__(self, topic: str, at: Location | None) -> None:
        super().__init__(
            f'topic "{topic}" is both read and written: the query would never end',
            hint="write to another topic, or make two queries of it",
            at=at,
        )


def validate(topology: Topology) -> None:
    """Raise the first error found."""
    if not NAME.fullmatch(topology.name):
        raise BadName("the query name", topology.name, None)
    if not topology.sources:
        raise EmptyTopology(topology.name)
    _check_names(topology)
    if not any(node.stateful or isinstance(node, Sink | Foreach | Deliver | Agents) for node in topology):
        raise NothingStored(topology.name, topology.sources[0].at)
    read = set(topology.source_topics)
    if topology.dead_letter_topic in read:
        raise ReadsItsOwnOutput(topology.dead_letter_topic, topology.sources[0].at)
    for sink in topology.of_type(Sink):
        if sink.topic in read and not _comes_back(topology, sink):
            raise ReadsItsOwnOutput(sink.topic, sink.at)
    _check_serdes(topology)
    waiting_topics(topology)


def _comes_back(topology: Topology, sink: Sink) -> bool:
    """Whether a later batch of the topology may read the records that it writes: what agents send to each other,
    directly or through another topic; and the events of an aggregate, which knows its own.
    """
    if isinstance(sink.upstream, Channel) and isinstance(sink.upstream.upstream, AggregateRoot):
        return sink.topic == sink.upstream.upstream.events_topic
    takers = [node for agents in topology.of_type(Agents) for node in agents.sources]
    taken = set[str]().union(*(topology.upstream_topics(node) for node in takers))
    on_the_way = isinstance(sink.upstream, StreamSource) and sink.topic not in topology.upstream_topics(sink)
    return sink.topic in taken and (on_the_way or isinstance(sink.upstream, AgentSends))


def _check_names(topology: Topology) -> None:
    seen: dict[str, Node] = {}
    for node in topology:
        if node.name in seen:
            raise DuplicateName(node, seen[node.name])
        seen[node.name] = node
        if node.keeps and not NAME.fullmatch(node.name):
            raise BadName("the step name", node.name, node.at)
        topic = getattr(node, "topic", None)
        if topic is not None and not NAME.fullmatch(topic):
            raise BadName("the topic name", topic, node.at)


class TopicReadTwoWays(TopologyError):
    """A topic with two declared types."""

    def __init__(self, topic: str, at: Location | None) -> None:
        super().__init__(
            f'topic "{topic}" is read twice with different types or timestamps',
            hint="read it once and use the stream twice, declare the same types, or use a StreamsBuilder for each",
            at=at,
        )


def _check_serdes(topology: Topology) -> None:
    """Reject two sources of one topic that decode the same bytes differently; one source can feed any number of
    steps.
    """
    seen: dict[str, StreamSource | TableSource] = {}
    for source in topology.sources:
        first = seen.setdefault(source.topic, source)
        if first is not source:
            raise TopicReadTwoWays(source.topic, source.at)


class WaitsForItself(TopologyError):
    """Topics that wait for each other, so that none would be read."""

    def __init__(self, topics: set[str], at: Location | None) -> None:
        names = ", ".join(f'"{topic}"' for topic in sorted(topics))
        super().__init__(
            f"nothing would ever be read of {names}: the stream feeds the table that it waits for",
            hint="leave wait_for_table=True out of this join",
            at=at,
        )


def waiting_topics(topology: Topology) -> dict[str, set[str]]:
    """Return, for each topic of a stream that waits, the topics of the tables it waits for."""
    waits: dict[str, set[str]] = {}
    for node in topology:
        if isinstance(node, TableLookup | HistoryLookup) and node.wait_for_table:
            for topic in topology.upstream_topics(node.stream):
                waits.setdefault(topic, set()).update(topology.upstream_topics(node.table))
            if stuck := _stuck(waits):
                raise WaitsForItself(stuck, node.at)
    return waits


def _stuck(waits: Mapping[str, set[str]]) -> set[str]:
    """Return the topics that wait for each other in a cycle, and those that wait for them."""
    left = dict(waits)
    while free := {topic for topic, others in left.items() if not others & left.keys()}:
        left = {topic: others for topic, others in left.items() if topic not in free}
    return set(left)
