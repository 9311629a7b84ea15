"""Add aggregates to a topology: the topics of commands, events and results, and the step between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

from potok.dsl.graph_builder import GraphBuilder
from potok.dsl.inputs.serdes import serde_of, timestamps_of
from potok.dsl.stream import Stream
from potok.dsl.table import Table
from potok.duration import Duration, to_ms
from potok.errors import Location, PotokError, TopologyError
from potok.events.event_type import TYPE_FIELD, declared_schema_of
from potok.events.write import ENVELOPES
from potok.expressions.function import Function
from potok.patterns.aggregates.definition import Definition, definition_of
from potok.patterns.aggregates.describe import described
from potok.patterns.aggregates.fold import FoldProcessor, check_fold, plain_event
from potok.patterns.aggregates.messages import WRITER, commands_topic, results_topic
from potok.patterns.aggregates.processor import EVENTS, FOLDED, RESULTS, AggregateProcessor
from potok.records.schemas.schema import Field, Schema
from potok.topology.nodes import AggregateRoot, Channel, Fold, Merge, Node, SelectKey, Sink, StreamSource
from potok.topology.nodes.sources import OwnRecords

Foreign = Literal["fold", "dead_letter"]


class AggregateHandle:
    """An aggregate of a topology: its states as a table, its events and results as streams."""

    def __init__(self, graph: GraphBuilder, node: AggregateRoot, channels: dict[str, Channel]) -> None:
        self._graph, self._node, self._channels = graph, node, channels

    @property
    def state(self) -> Table[Any, Any]:
        """The aggregates by id: `{"version": n, "state": {...}}`."""
        return Table(self._graph, self._node)

    @property
    def events(self) -> Stream[Any, Any]:
        """The events in the batch that folds them, those of other writers included, with the field `event_type`."""
        if FOLDED not in self._channels:
            hint = "give a field one type in all events, or read the topic with builder.events in another program"
            text = f'the events of aggregate "{self._node.name}" do not fit together as one stream'
            raise TopologyError(text, hint=hint, at=self._node.at)
        processor = self._node.processor
        assert isinstance(processor, AggregateProcessor)
        processor.forwards = True
        return Stream(self._graph, self._channels[FOLDED])

    @property
    def results(self) -> Stream[Any, Any]:
        """The results of the commands, as JSON in bytes."""
        return Stream(self._graph, self._channels[RESULTS])


def add_aggregate(
    graph: GraphBuilder,
    cls: type,
    envelope: str,
    foreign: str,
    keep_results: Duration,
    partitions: int | None,
    at: Location | None,
) -> AggregateHandle:
    """Add the nodes of an aggregate; see `StreamsBuilder.aggregate`."""
    try:
        definition = definition_of(cls)
    except PotokError as error:
        error.at = error.at or at
        raise
    if envelope not in ENVELOPES:
        hint = f"use one of {', '.join(ENVELOPES)}"
        raise TopologyError(f'there is no envelope "{envelope}"', hint=hint, at=at)
    if foreign not in get_args(Foreign):
        hint = f"use one of {', '.join(get_args(Foreign))}"
        raise TopologyError(f'foreign= cannot be "{foreign}"', hint=hint, at=at)
    keep_ms = to_ms(keep_results)
    if keep_ms < 0:
        raise TopologyError("keep_results= is negative", hint='write keep_results="1 hour"', at=at)
    processor = AggregateProcessor(definition, graph.name, envelope, foreign, keep_ms)
    upstream = _inputs(graph, definition, processor, partitions, at)
    folded = _folded(definition)
    channels = [(EVENTS, BYTES), (RESULTS, BYTES), *([] if folded is None else [(FOLDED, folded)])]
    node = AggregateRoot(
        definition.name,
        at,
        upstream,
        processor,
        processor.functions(),
        tuple(processor.declared().items()),
        tuple(channels),
        fixed_key=True,
        events_topic=definition.events_topic,
        summary=_summary(definition),
        description=described(definition),
    )
    graph.add(node)
    found = {name: Channel(f"{node.name}.{name}", at, node, n, s) for n, (name, s) in enumerate(channels)}
    for one in found.values():
        graph.add(one)
    for name, topic in ((EVENTS, definition.events_topic), (RESULTS, results_topic(definition.name))):
        sink = graph.step_name(None, f"{node.name}.to.{topic}")
        seals = tuple(one for one in definition.event_types.types if name == EVENTS and one.personal)
        graph.add(Sink(sink, at, found[name], topic, value_format="raw", partitions=partitions, seals=seals))
    return AggregateHandle(graph, node, found)


def add_fold(graph: GraphBuilder, cls: Any, topic: str, by: str | None, name: str | None, at: Location | None) -> Fold:
    """Add the nodes of a fold; see `StreamsBuilder.fold`."""
    check_fold(cls, at)
    key, value, time = serde_of(str, None, at), serde_of(None, None, at), timestamps_of(None, None, None, at)
    upstream: Node = StreamSource(graph.step_name(None, topic), at, topic, key, value, time, permanent=True)
    graph.add(upstream)
    step = graph.step_name(name, cls.__name__)
    if by is not None:

        def field(v: Any) -> Any:
            return plain_event(v)[by]

        function = replace(Function.of(field, (1,)), name=f'field "{by}"', location=at)
        upstream = SelectKey(f"{step}.by", at, upstream, function, declared_schema_of(str))
        graph.add(upstream)
    processor = FoldProcessor(cls)
    stores = tuple(processor.declared().items())
    detail = f"with {cls.__name__}"
    node = Fold(step, at, upstream, processor, processor.functions(), stores, fixed_key=True, summary=detail)
    graph.add(node)
    return node


BYTES = declared_schema_of(bytes)


def _inputs(
    graph: GraphBuilder,
    definition: Definition,
    processor: AggregateProcessor,
    partitions: int | None,
    at: Location | None,
) -> Merge:
    key, value, time = serde_of(str, None, at), serde_of(bytes, "raw", at), timestamps_of(None, None, None, at)
    own = OwnRecords(graph.name, WRITER, processor.writer)
    commands, events = commands_topic(definition.name), definition.events_topic
    sources = (
        StreamSource(graph.step_name(None, commands), at, commands, key, value, time, partitions=partitions),
        StreamSource(
            graph.step_name(None, events), at, events, key, value, time, partitions=partitions, own=own, permanent=True
        ),
    )
    for source in sources:
        graph.add(source)
    merged = Merge(f"{definition.name}.inputs", at, sources)
    graph.add(merged)
    return merged


def _folded(definition: Definition) -> Schema | None:
    """Return the type of the stream of folded events; None if their fields do not fit together."""
    types = definition.event_types
    try:
        schema = types.schema
    except TopologyError:
        return None
    if len(types.types) > 1:
        return schema
    first = Field(TYPE_FIELD, declared_schema_of(str), nullable=False)
    return Schema.struct([first, *(one for one in schema.fields if one.name != TYPE_FIELD)])


def _summary(definition: Definition) -> str:
    return f"commands {', '.join(definition.commands) or 'none'}; events {', '.join(definition.events)}"
