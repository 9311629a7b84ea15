"""Sinks: where records are written, in the log and outside."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import show_ms
from potok.events.event_type import EventType
from potok.events.write import EventWriting
from potok.expressions.function import Function
from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import SinkSpec
from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Sink(Node):
    """Write to a topic. An empty format is derived from the type of the records."""

    upstream: Node
    topic: str
    key_format: str = ""
    value_format: str = ""
    partitions: int | None = None
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    retention_ms: int | None = None
    cleanup_policy: str = "delete"
    """Retention and compaction of the topic, if this sink creates it."""
    stamp: Function | None = None
    """The event time of a written record, as a function of its key and value; without one, records keep theirs."""
    events: EventWriting | None = None
    """Writes values as events in an envelope; replaces the format of the values."""
    seals: tuple[EventType, ...] = ()
    """The values are events already; the personal fields of these types are encrypted when they are written."""
    by_task: bool = True
    """Whether a task may publish its output of a batch before the rest is visible."""

    @property
    def kept(self) -> str:
        """Return the retention as text, unless it is the default."""
        words = ["compacted"] if "compact" in self.cleanup_policy else []
        words += [f"kept {show_ms(self.retention_ms)}"] if self.retention_ms is not None else []
        return f" ({', '.join(words)})" if words else ""


@dataclass(frozen=True, slots=True, eq=False)
class Foreach(Node):
    """Call `action` for each record; it has no output."""

    upstream: Node
    action: Function

    @property
    def leaves_the_log(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Deliver(Node):
    """Deliver to a sink outside the log."""

    upstream: Node
    target: SinkSpec
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE

    @property
    def kind(self) -> str:
        return self.target.verb

    @property
    def leaves_the_log(self) -> bool:
        return True
