"""The definition of a saga: plain data that tasks receive."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from potok.duration import show_ms
from potok.errors import TopologyError
from potok.events.event_type import EventType
from potok.patterns.sagas.declare import Retry
from potok.patterns.sagas.message import Message


@dataclasses.dataclass(frozen=True, slots=True)
class SagaStep:
    """A step; `group` is the number of the group that it runs in."""

    name: str
    group: int
    send: Message | None
    undo: Message | None
    waits_for_undone: bool
    timeout_ms: int | None
    retry: Retry
    pivot: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Handlers:
    """The methods of a saga class, by event type and by the name of a timer, and the defaults of its state."""

    cls: type
    events: Mapping[str, str]
    timers: Mapping[str, str]
    defaults: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """A saga. `roles` says what an event means, by its type: the name of a step, and its part in that step."""

    name: str
    by: str
    version: int
    missing: str
    clock: str
    keep_ms: int | None
    """How long an instance is kept after its end; forever if None."""
    starts: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    """The fields of each event that the saga reads, by its type."""
    reads: tuple[EventType, ...]
    steps: tuple[SagaStep, ...] = ()
    roles: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    emits: Mapping[str, Message] = dataclasses.field(default_factory=dict)
    """What is emitted at each end."""
    sends: tuple[EventType, ...] = ()
    emitted: tuple[EventType, ...] = ()
    watches: bool = False
    """Others exchange the events: nothing is sent."""
    ends: tuple[str, ...] = ()
    """The ends that events announce, in a choreography."""
    handlers: Handlers | None = None

    @property
    def summary(self) -> str:
        """What `describe` shows of it."""
        if self.handlers is not None:
            return f"by {self.by}, version {self.version}: handlers of {', '.join(self.handlers.events)}"
        groups: dict[int, list[str]] = {}
        for step in self.steps:
            groups.setdefault(step.group, []).append(_render(step))
        kind = "choreography " if self.watches else ""
        return f"{kind}by {self.by}, version {self.version}: {', '.join(' and '.join(one) for one in groups.values())}"

    @property
    def structure(self) -> str:
        """What instances of one version rely on: a program that changes it needs another version."""
        if self.handlers is not None:
            return f"handlers; timers {', '.join(sorted(self.handlers.timers))}"
        steps = ", ".join(f"{one.name} in group {one.group}" for one in self.steps)
        roles = ", ".join(f"{event}: {' '.join(role).strip()}" for event, role in sorted(self.roles.items()))
        return f"{steps}; {roles}"


def _render(step: SagaStep) -> str:
    timeout = "" if step.timeout_ms is None else f"timeout {show_ms(step.timeout_ms)}"
    retry = f"{step.retry.times} retries" if step.retry.times else ""
    undo = f"undo {step.undo.type}" if step.undo is not None else ""
    more = ", ".join(filter(None, (timeout, retry, undo, "pivot" if step.pivot else "")))
    return f"{step.name} ({more})" if more else step.name


def same_instances(definitions: Sequence[Definition]) -> dict[int, Definition]:
    """Return definitions of one saga, the newest last, by version."""
    found: dict[int, Definition] = {}
    newest = definitions[-1]
    for one in definitions:
        if (one.name, one.by, one.clock) != (newest.name, newest.by, newest.clock):
            text = f'"{one.name}" is not an earlier version of saga "{newest.name}"'
            raise TopologyError(text, hint="name, by= and clock= stay the same")
        if one.version in found:
            hint = "pass version=2 to @potok.saga of the newer one"
            raise TopologyError(f'saga "{one.name}" has two definitions of version {one.version}', hint=hint)
        found[one.version] = one
    return found
