"""Events as sources and sinks of the DSL."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from potok.dsl.graph_builder import GraphBuilder
from potok.errors import Location, PotokError, TopologyError
from potok.events.event_type import EventType, EventTypes, event_types
from potok.events.write import ENVELOPES, EventWriting
from potok.topology.nodes import Arm, Branch, Filter, Node, Peek, Repartition, SelectKey, Sink, StreamSource


def declared_events(classes: Sequence[type], envelope: str, at: Location | None) -> EventTypes:
    """Return the event types of a source, checked."""
    if envelope not in ("any", "cloudevents", "dictionary"):
        hint = "use any, cloudevents or dictionary"
        raise TopologyError(f'there is no envelope "{envelope}"', hint=hint, at=at)
    try:
        found = event_types(classes, envelope)
        found.schema  # noqa: B018 - raises if the types do not fit together
    except PotokError as error:
        error.at = error.at or at
        raise
    return found


def event_writing(
    graph: GraphBuilder,
    node: Node,
    topic: str,
    envelope: str | None,
    event: type | Sequence[type] | None,
    value_format: str | None,
    at: Location | None,
) -> EventWriting | None:
    """Return how a sink writes events; None without an envelope."""
    if envelope is None:
        if event is not None:
            raise TopologyError("event= needs an envelope", hint='pass envelope="cloudevents"', at=at)
        return None
    if envelope not in ENVELOPES:
        hint = f"use one of {', '.join(ENVELOPES)}"
        raise TopologyError(f'there is no envelope "{envelope}"', hint=hint, at=at)
    if value_format is not None:
        raise TopologyError("an envelope is the format of the values", hint="leave out value_format=", at=at)
    classes = () if event is None else (event,) if isinstance(event, type) else tuple(event)
    types = declared_events(classes, "any", at).types if classes else _types_before(node)
    if not types:
        hint = "pass event=OrderPaid, or event=[OrderCreated, OrderPaid] for values with the field event_type"
        raise TopologyError("the event type of these values is not known", hint=hint, at=at)
    nodes = graph.topology().nodes
    number = sum(isinstance(other, Sink) and other.topic == topic for other in nodes)
    return EventWriting(envelope, types, f"/potok/{quote(graph.name)}", f"{topic}#{number}")


def _types_before(node: Node) -> tuple[EventType, ...]:
    """Return the types of a source of events whose values reach this node unchanged."""
    if isinstance(node, StreamSource):
        return () if node.events is None else node.events.types
    if isinstance(node, Arm | Branch | Filter | Peek | Repartition | SelectKey):
        return _types_before(node.upstreams[0])
    return ()
