"""Add sagas to a topology: their sources, the step that runs them, and the topics that they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from potok.dsl.graph_builder import GraphBuilder
from potok.dsl.inputs.serdes import field_function, serde_of, timestamps_of
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.duration import Duration, to_ms
from potok.errors import Location, PotokError, TopologyError
from potok.events.event_type import EventTypes
from potok.events.write import ENVELOPES, EventWriting
from potok.patterns.sagas.compile import definition_of
from potok.patterns.sagas.definition import Definition, same_instances
from potok.patterns.sagas.instance import STATES
from potok.patterns.sagas.processor import COMMANDS, EMITTED, INSTANCES, SagaProcessor, read_types, sent_types
from potok.topology.nodes import Channel, Merge, Node, Ordered, Saga, SelectKey, Serde, Sink, StoreTable, StreamSource


class SagaHandle:
    """A saga of a topology: its instances as a table, and what it sends as streams."""

    def __init__(self, graph: GraphBuilder, node: Saga, channels: dict[str, Channel], tables: dict[str, StoreTable]):
        self._graph, self._node, self._channels, self._tables = graph, node, channels, tables

    @property
    def instances(self) -> Table[Any, Any]:
        """All instances by key, with their state, steps and history."""
        return Table(self._graph, self._tables[INSTANCES])

    def in_state(self, state: str) -> Table[Any, Any]:
        """The instances in a state: `running`, `aborting`, `stuck`, `completed` or `aborted`."""
        if state not in STATES:
            raise TopologyError(f'a saga has no state "{state}"', hint=f"use one of {', '.join(STATES)}")
        return Table(self._graph, self._tables[state])

    @property
    def commands(self) -> Stream[Any, Any]:
        """The commands, with the field `event_type` if there are several kinds."""
        return self._stream(COMMANDS)

    @property
    def emitted(self) -> Stream[Any, Any]:
        """The events of `potok.emit`."""
        return self._stream(EMITTED)

    def _stream(self, output: str) -> Stream[Any, Any]:
        if output not in self._channels:
            hint = "declare a step with send=" if output == COMMANDS else "declare done = potok.emit(...)"
            raise TopologyError(f'saga "{self._node.name}" has no {output}', hint=hint)
        return Stream(self._graph, self._channels[output])


def add_saga(
    graph: GraphBuilder,
    cls: Any,
    topics: Sequence[str],
    commands: str | None,
    emits: str | None,
    earlier: Sequence[Any],
    envelope: str,
    grace: Duration,
    at: Location | None,
) -> SagaHandle:
    """Add the nodes of a saga; see `StreamsBuilder.saga`."""
    try:
        definitions = same_instances([definition_of(one) for one in (*earlier, cls)])
        types = read_types(definitions)
        types.schema  # noqa: B018 - raises if the types do not fit together
        sent = {
            COMMANDS: sent_types(definitions, lambda one: one.sends),
            EMITTED: sent_types(definitions, lambda one: one.emitted),
        }
        schemas = {name: found.schema for name, found in sent.items() if found.types}
    except PotokError as error:
        error.at = error.at or at
        raise
    newest = definitions[max(definitions)]
    _check(newest, topics, commands, envelope, schemas, at)
    upstream = _events(graph, newest, types, [*topics, f"{newest.name}-control"], to_ms(grace), at)
    processor = SagaProcessor(definitions)
    node = Saga(
        newest.name,
        at,
        upstream,
        processor,
        processor.functions(),
        tuple(processor.declared().items()),
        tuple(schemas.items()),
        fixed_key=True,
        by=newest.by,
        clock=newest.clock,
        grace_ms=to_ms(grace),
        summary=newest.summary,
        versions=tuple((version, one.structure) for version, one in sorted(definitions.items())),
    )
    graph.add(node)
    channels = {name: Channel(f"{node.name}.{name}", at, node, n, s) for n, (name, s) in enumerate(schemas.items())}
    tables = {
        name: StoreTable(f"{node.name}.{name}", at, node, number, name)
        for number, (name, _) in enumerate(node.stores, len(channels))
    }
    for one in (*channels.values(), *tables.values()):
        graph.add(one)
    for name, topic in ((COMMANDS, commands), (EMITTED, emits or topics[0])):
        if name in channels and topic is not None:
            _write(graph, channels[name], topic, envelope, sent[name], at)
    return SagaHandle(graph, node, channels, tables)


def _check(
    newest: Definition,
    topics: Sequence[str],
    commands: str | None,
    envelope: str,
    schemas: dict[str, Any],
    at: Location | None,
) -> None:
    if not topics:
        raise TopologyError("a saga reads events", hint='pass events="order-events"', at=at)
    if envelope not in ENVELOPES:
        hint = f"use one of {', '.join(ENVELOPES)}"
        raise TopologyError(f'there is no envelope "{envelope}"', hint=hint, at=at)
    if COMMANDS in schemas and commands is None:
        hint = f'pass commands="{newest.name}-commands"'
        raise TopologyError(f'saga "{newest.name}" sends commands, but no topic is named', hint=hint, at=at)


def _events(
    graph: GraphBuilder,
    newest: Definition,
    types: EventTypes,
    topics: Sequence[str],
    grace_ms: int,
    at: Location | None,
) -> Node:
    """Add the sources, and give their records the key of their instance; by event time they are sorted as well."""
    sources: list[Node] = []
    for topic in topics:
        key, time = serde_of(str, None, at), timestamps_of(None, None, None, at)
        name = graph.step_name(None, f"{newest.name}.from.{topic}")
        sources.append(StreamSource(name, at, topic, key, Serde("json", types.schema), time, events=types))
        graph.add(sources[-1])
    merged = Merge(f"{newest.name}.events", at, tuple(sources))
    graph.add(merged)
    keyed: Node = SelectKey(f"{newest.name}.by", at, merged, field_function(newest.by, at), None)
    graph.add(keyed)
    if newest.clock == "event":
        keyed = Ordered(f"{newest.name}.ordered", at, keyed, grace_ms)
        graph.add(keyed)
    return keyed


def _write(
    graph: GraphBuilder, channel: Channel, topic: str, envelope: str, types: EventTypes, at: Location | None
) -> None:
    number = sum(isinstance(other, Sink) and other.topic == topic for other in graph.topology().nodes)
    how = EventWriting(envelope, types.types, f"/potok/{graph.name}", f"{topic}#{number}")
    graph.add(Sink(graph.step_name(None, f"{channel.name}.to.{topic}"), at, channel, topic, events=how))
