"""The definition of a saga, compiled from its declaration: plain data that tasks receive."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from potok.errors import Location, TopologyError
from potok.events.event_type import EventType, declared_schema_of, event_type
from potok.patterns.sagas.declare import SAGA_MARK, Emit, Retry, SagaDeclaration, Send, StepDeclaration, Together

ENDS = {"done": "completed", "completed": "completed", "aborted": "aborted", "stuck": "stuck"}


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """A command or an event that a saga sends: its type, and how it is made of the data of the instance."""

    type: str
    fields: tuple[str, ...]
    required: tuple[str, ...] = ()
    function: Callable[[Any], Any] | None = None

    def make(self, data: Mapping[str, Any]) -> dict[str, Any]:
        if self.function is None:
            missing = [name for name in self.required if name not in data]
            if missing:
                raise ValueError(f'"{self.type}" needs the field "{missing[0]}", which no event of the instance had')
            return {name: data[name] for name in self.fields if name in data}
        made = self.function(Data(data))
        if not dataclasses.is_dataclass(made) or isinstance(made, type) or message_type(type(made)).name != self.type:
            raise TypeError(f'the function that makes "{self.type}" returned {made!r:.200}')
        return dataclasses.asdict(made)


class Data(dict[str, Any]):
    """The fields of the events of an instance so far, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f'no event of this instance had a field "{name}"') from None


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
class Definition:
    """A saga. `roles` says what an event means, by its type: the name of a step, and its part in that step."""

    name: str
    by: str
    version: int
    missing: str
    clock: str
    starts: tuple[str, ...]
    steps: tuple[SagaStep, ...]
    roles: dict[str, tuple[str, str]]
    emits: dict[str, Message]
    fields: dict[str, tuple[str, ...]]
    """The fields of each event that the saga reads, by its type."""
    reads: tuple[EventType, ...] = ()
    sends: tuple[EventType, ...] = ()
    emitted: tuple[EventType, ...] = ()
    keep_ms: int | None = None
    """How long an instance is kept after its end; forever if None."""
    watches: bool = False
    """Others exchange the events: nothing is sent."""
    waits_for_end: bool = False
    """Events say that the saga has ended, and not its last step."""

    def step(self, name: str) -> SagaStep:
        return next(one for one in self.steps if one.name == name)


def message_type(cls: type) -> EventType:
    """Return the type of a command: a declared event, or a dataclass under the name of its class."""
    if "__potok_event__" in cls.__dict__:
        return event_type(cls)
    if not dataclasses.is_dataclass(cls):
        hint = f'write @potok.event("...") and @dataclass above class {cls.__name__}'
        raise TopologyError(f"{cls.__name__} is not a message", hint=hint)
    return EventType(cls.__name__, 1, declared_schema_of(cls))


def definition_of(cls: type) -> Definition:
    """Compile the class of a saga; raise TopologyError if it is not consistent."""
    said: SagaDeclaration | None = cls.__dict__.get(SAGA_MARK)
    if said is None:
        hint = '@potok.saga("checkout", by="order_id", starts=OrderCreated)'
        raise TopologyError(f"{cls.__name__} is not a saga", hint=hint)
    try:
        return _Compiler(cls, said).compile()
    except TopologyError as error:
        error.at = error.at or said.at
        raise


class _Compiler:
    def __init__(self, cls: type, said: SagaDeclaration) -> None:
        self._cls, self._said = cls, said
        self._reads: dict[str, EventType] = {}
        self._sends: dict[str, EventType] = {}
        self._emitted: dict[str, EventType] = {}
        self._roles: dict[str, tuple[str, str]] = {}
        self._known: set[str] = set()

    def compile(self) -> Definition:
        said = self._said
        start = self._event(said.starts, "", "start", said.at)
        groups = self._groups()
        if not groups:
            hint = "payment = potok.step(send=ProcessPayment, ok=PaymentProcessed)"
            raise TopologyError(f'saga "{said.name}" has no steps', hint=hint)
        steps = [
            self._step(name, number, one, group) for number, group in enumerate(groups) for name, one in group.items()
        ]
        emits = self._emits()
        return Definition(
            said.name,
            said.by,
            said.version,
            said.missing,
            said.clock,
            (start.name,),
            tuple(steps),
            self._roles,
            emits,
            {name: _names(type_) for name, type_ in self._reads.items()},
            tuple(self._reads.values()),
            tuple(self._sends.values()),
            tuple(self._emitted.values()),
            said.keep_ms,
        )

    def _groups(self) -> list[dict[str, StepDeclaration]]:
        items = vars(self._cls).items()
        names = {id(one): name for name, one in items if isinstance(one, StepDeclaration)}
        grouped = {id(one): number for number, (_, item) in enumerate(items) if isinstance(item, Together)
                   for one in item.steps}  # fmt: skip
        found: dict[object, dict[str, StepDeclaration]] = {}
        for name, item in items:
            if isinstance(item, StepDeclaration):
                found.setdefault(grouped.get(id(item), name), {})[name] = item
            elif isinstance(item, Together):
                for one in item.steps:
                    if id(one) not in names:
                        hint = "name the step: stock = potok.step(...), then potok.together(payment, stock)"
                        raise TopologyError(f'a step of "{name}" has no name', hint=hint, at=one.at)
        return list(found.values())

    def _step(self, name: str, number: int, one: StepDeclaration, group: Mapping[str, StepDeclaration]) -> SagaStep:
        if one.pivot and len(group) > 1:
            raise TopologyError("a pivot runs alone", hint="leave it out of potok.together", at=one.at)
        before = set(self._known)
        ok = self._event(one.ok, name, "ok", one.at)
        for role, cls in (("failed", one.failed), ("undone", one.undone), ("undo_failed", one.undo_failed)):
            if cls is not None:
                self._event(cls, name, role, one.at, adds=False)
        after = set(self._known)
        self._known = before
        send = None if one.send is None else self._message(one.send, f'step "{name}"', one.at, self._sends)
        # A compensation may follow a timeout, when the answer is not known.
        undo = None if one.undo is None else self._message(one.undo, f'undo of step "{name}"', one.at, self._sends)
        self._known = after if len(group) == 1 else before
        if len(group) > 1 and name == list(group)[-1]:
            self._known = before.union(*(_names(message_type(part.ok)) for part in group.values()))
        del ok
        return SagaStep(name, number, send, undo, one.undone is not None, one.timeout_ms, one.retry, one.pivot)

    def _event(self, cls: type, step: str, role: str, at: Location | None, *, adds: bool = True) -> EventType:
        type_ = event_type(cls)
        if type_.name in self._roles:
            hint = "an event that answers two steps does not say which: declare two classes"
            raise TopologyError(f'event "{type_.name}" is used twice in saga "{self._said.name}"', hint=hint, at=at)
        if self._said.by not in _names(type_):
            text = f'event "{type_.name}" has no field "{self._said.by}", which names the instance'
            raise TopologyError(text, hint=f"add the field {self._said.by}: str to {cls.__name__}", at=at)
        self._roles[type_.name] = (step, role)
        self._reads[type_.name] = type_
        if adds:
            self._known |= set(_names(type_))
        return type_

    def _message(self, send: Send, where: str, at: Location | None, known: dict[str, EventType]) -> Message:
        cls, function = (send, None) if isinstance(send, type) else (_returned(send, where, at), send)
        type_ = message_type(cls)
        same = known.setdefault(type_.name, type_)
        if same.schema.arrow != type_.schema.arrow:
            raise TopologyError(f'two classes declare the message "{type_.name}"', hint="give them two names", at=at)
        required = tuple(
            one.name
            for one in dataclasses.fields(cls)
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        )
        if function is None:
            for name in required:
                if name not in self._known:
                    hint = f"add it to an earlier event, or pass a function: def make(data) -> {cls.__name__}"
                    text = f'{where}: no earlier event has the field "{name}" of {cls.__name__}'
                    raise TopologyError(text, hint=hint, at=at)
        return Message(type_.name, _names(type_), required, function)

    def _emits(self) -> dict[str, Message]:
        found: dict[str, Message] = {}
        for name, item in vars(self._cls).items():
            if not isinstance(item, Emit):
                continue
            end = item.when or ENDS.get(name)
            if end is None or end not in ENDS.values():
                hint = 'name it done, aborted or stuck, or pass when="completed"'
                raise TopologyError(f'it is not clear when "{name}" is emitted', hint=hint)
            if end != "completed":
                known, self._known = self._known, set(_names(event_type(self._said.starts)))
            found[end] = self._message(item.event, f'"{name}"', self._said.at, self._emitted)
            if end != "completed":
                self._known = known
        return found


def _names(type_: EventType) -> tuple[str, ...]:
    return tuple(field.name for field in type_.schema.fields)


def _returned(function: Callable[[Any], Any], where: str, at: Location | None) -> type:
    """Return the class that a function says it returns."""
    try:
        found = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        found = inspect.signature(function).return_annotation
    if not isinstance(found, type):
        hint = "write def charge(order) -> ProcessPayment: ..."
        raise TopologyError(f"{where}: the function does not say which class it returns", hint=hint, at=at)
    return found


def same_instances(definitions: Iterable[Definition]) -> dict[int, Definition]:
    """Return definitions of one saga by version."""
    found: dict[int, Definition] = {}
    for one in definitions:
        first = next(iter(found.values()), one)
        if (one.name, one.by, one.clock) != (first.name, first.by, first.clock):
            text = f'"{one.name}" is not an earlier version of saga "{first.name}"'
            raise TopologyError(text, hint="name, by= and clock= stay the same")
        if one.version in found:
            hint = "pass version=2 to @potok.saga of the newer one"
            raise TopologyError(f'saga "{one.name}" has two definitions of version {one.version}', hint=hint)
        found[one.version] = one
    return found
