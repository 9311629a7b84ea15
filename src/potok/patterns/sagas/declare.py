"""Declare sagas: steps with their commands, answers, compensations and timers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError

C = TypeVar("C", bound=type)

_NAME = re.compile(r"[A-Za-z0-9_-]+")
SAGA_MARK = "__potok_saga__"
ENDS = {"done": "completed", "completed": "completed", "aborted": "aborted", "stuck": "stuck"}
"""When an event of `potok.emit` is emitted, by the name of its attribute."""

Missing = Literal["dead_letter", "ignore", "start"]
Clock = Literal["wall", "event"]
Send = type | Callable[[Any], Any]
"""The class of a command, filled by field name, or a function of the data of the instance that returns a command."""


@dataclasses.dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed command is sent again, and after which pause."""

    times: int
    delay_ms: int


@dataclasses.dataclass(frozen=True, slots=True)
class StepDeclaration:
    """What `potok.step` was given."""

    send: Send | None
    ok: type
    failed: type | None
    undo: Send | None
    undone: type | None
    undo_failed: type | None
    timeout_ms: int | None
    retry: Retry
    pivot: bool
    at: Location | None


@dataclasses.dataclass(frozen=True, slots=True)
class Together:
    """Steps that run at the same time."""

    steps: tuple[StepDeclaration, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Emit:
    """An event at the end of the saga. None means that the name of the attribute says which end."""

    event: Send
    when: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class SagaDeclaration:
    """What `@potok.saga` was given."""

    name: str
    by: str
    starts: type | None
    version: int
    missing: str
    clock: str
    keep_ms: int | None
    at: Location | None
    sends: tuple[type, ...] = ()
    emits: tuple[type, ...] = ()
    watches: bool = False
    ends: Mapping[str, type] = dataclasses.field(default_factory=dict)


def retry(times: int, delay: Duration = 0) -> Retry:
    """Send a failed command up to `times` times again, `delay` after each failure."""
    delay_ms = to_ms(delay)
    if times < 0 or delay_ms < 0:
        raise TopologyError("a retry cannot be negative", hint='write potok.retry(3, "10 s")', at=Location.of_caller())
    return Retry(times, delay_ms)


def step(
    *,
    send: Send | None = None,
    ok: type,
    failed: type | None = None,
    undo: Send | None = None,
    undone: type | None = None,
    undo_failed: type | None = None,
    timeout: Duration | None = None,
    retry: Retry | None = None,
    pivot: bool = False,
) -> StepDeclaration:
    """Declare a step of a saga: a command, the events that answer it, and how to compensate it.

    >>> payment = potok.step(send=ProcessPayment, ok=PaymentProcessed, failed=PaymentFailed, undo=RefundPayment)

    Args:
        send: The class of the command, whose fields are taken by name from the events of the instance, the latest
            that has the field; or a function of these fields with the class as its return type. A step without a
            command waits for its event, as for an approval.
        ok: The event that completes the step.
        failed: The event that says that the step failed. It is retried, then the saga is aborted.
        undo: The command that compensates the step, as `send`. A step that timed out is compensated too.
        undone: The event that completes the compensation. Without it, the next compensation follows at once.
        undo_failed: The event that says that the compensation failed.
        timeout: How long to wait for the answer to a command. A step that times out aborts the saga; a compensation is
            sent again as `retry` says, and then the saga is stuck.
        retry: How often a failed command is sent again; not at all by default.
        pivot: Once this step is done the saga is not aborted: later steps are only retried.
    """
    at = Location.of_caller()
    timeout_ms = None if timeout is None else to_ms(timeout)
    if timeout_ms is not None and timeout_ms <= 0:
        raise TopologyError("a timeout must be positive", hint='write timeout="15 min"', at=at)
    if undo_failed is not None and undone is None:
        raise TopologyError("undo_failed= needs undone=", hint="pass the event that completes the compensation", at=at)
    return StepDeclaration(send, ok, failed, undo, undone, undo_failed, timeout_ms, retry or Retry(0, 0), pivot, at)


def together(*steps: StepDeclaration) -> Together:
    """Run steps at the same time; the next one follows when all of them are done.

    >>> class Checkout:
    ...     payment = potok.step(send=ProcessPayment, ok=PaymentProcessed)
    ...     stock = potok.step(send=ReserveItems, ok=InventoryReserved)
    ...     both = potok.together(payment, stock)
    """
    if len(steps) < 2 or not all(isinstance(one, StepDeclaration) for one in steps):
        hint = "name them first: both = potok.together(payment, stock)"
        raise TopologyError("together takes two or more steps", hint=hint, at=Location.of_caller())
    return Together(steps)


def emit(event: Send, *, when: Literal["completed", "aborted", "stuck"] | None = None) -> Emit:
    """Emit an event when the saga ends.

    Args:
        event: The class of the event, or a function, as `send=` of a step.
        when: The end; by default the name of the attribute: `done` or `completed`, `aborted`, `stuck`.
    """
    return Emit(event, when)


def saga(
    name: str,
    *,
    by: str,
    starts: type | None = None,
    version: int = 1,
    missing: Missing = "dead_letter",
    clock: Clock = "wall",
    keep: Duration | None = "7 days",
    sends: Sequence[type] = (),
    emits: Sequence[type] = (),
) -> Callable[[C], C]:
    """Declare a class of steps, or a class of handlers (`potok.Saga`), as a saga.

    >>> @potok.saga("checkout", by="order_id", starts=OrderCreated)
    ... class Checkout:
    ...     payment = potok.step(send=ProcessPayment, ok=PaymentProcessed, undo=RefundPayment)

    Args:
        name: Names the saga, its state and its table.
        by: The field of all its events that names the instance.
        starts: The event that starts an instance; in a class of handlers, `@potok.on(Event, start=True)` says it.
        version: The version of the definition. Instances keep the one they began with.
        missing: What becomes of an event whose instance does not exist: `dead_letter`, `ignore`, or `start`.
        clock: The clock of timeouts and retries: `wall`, or `event` for event time.
        keep: How long instances are kept after their end, so that duplicates and stragglers are recognised; None to
            keep them forever.
        sends: The commands that handlers send.
        emits: The events that handlers emit.
    """
    at = Location.of_caller()
    hint = 'write @potok.saga("checkout", by="order_id", starts=OrderCreated)'
    said = _declaration(name, by, starts, version, missing, clock, keep, at, hint)
    return _mark(dataclasses.replace(said, sends=tuple(sends), emits=tuple(emits)))


def choreography(
    name: str,
    *,
    by: str,
    starts: type,
    completed: type | None = None,
    aborted: type | None = None,
    version: int = 1,
    missing: Missing = "start",
    clock: Clock = "wall",
    keep: Duration | None = "7 days",
) -> Callable[[C], C]:
    """Declare a saga that services run among themselves by exchanging events. It is only watched: nothing is sent.

    >>> @potok.choreography("checkout", by="order_id", starts=OrderCreated, completed=OrderCompleted)
    ... class Checkout:
    ...     payment = potok.step(ok=PaymentProcessed, failed=PaymentFailed, undone=PaymentRefunded, timeout="15 min")
    ...     inventory = potok.step(ok=InventoryReserved, failed=InventoryFailed)

    A step that is overdue makes the instance stuck until its event arrives.

    Args:
        name: Names the saga, its state and its table.
        by: The field of all its events that names the instance.
        starts: The event that starts an instance.
        completed: The event that ends an instance well; without it, the last step does.
        aborted: The event that ends an instance after a failure; without it, the last compensation does.
        version: The version of the definition. Instances keep the one they began with.
        missing: What becomes of an event whose instance does not exist: `start`, because the order of events in
            several topics is not defined; `dead_letter` or `ignore`.
        clock: The clock of timeouts: `wall`, or `event` for event time.
        keep: How long instances are kept after their end; None to keep them forever.
    """
    at = Location.of_caller()
    hint = 'write @potok.choreography("checkout", by="order_id", starts=OrderCreated)'
    said = _declaration(name, by, starts, version, missing, clock, keep, at, hint)
    ends = {end: event for end, event in (("completed", completed), ("aborted", aborted)) if event is not None}
    return _mark(dataclasses.replace(said, watches=True, ends=ends))


def _declaration(
    name: str,
    by: str,
    starts: type | None,
    version: int,
    missing: str,
    clock: str,
    keep: Duration | None,
    at: Location | None,
    hint: str,
) -> SagaDeclaration:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        text = f'a saga cannot be named "{name}"' if name else "a saga needs a name"
        raise TopologyError(text, hint=f"{hint}; letters, digits, - and _ make a name", at=at)
    if version < 1:
        raise TopologyError("the version of a saga is at least 1", hint="pass version=1", at=at)
    if missing not in ("dead_letter", "ignore", "start"):
        raise TopologyError(f'missing="{missing}" is unknown', hint="use dead_letter, ignore or start", at=at)
    if clock not in ("wall", "event"):
        raise TopologyError(f'clock="{clock}" is unknown', hint="use wall or event", at=at)
    keep_ms = None if keep is None else to_ms(keep)
    if keep_ms is not None and keep_ms < 0:
        raise TopologyError("keep= cannot be negative", hint='write keep="7 days"', at=at)
    return SagaDeclaration(name, by, starts, version, missing, clock, keep_ms, at)


def _mark(said: SagaDeclaration) -> Callable[[C], C]:
    def mark(cls: C) -> C:
        setattr(cls, SAGA_MARK, said)
        return cls

    return mark
