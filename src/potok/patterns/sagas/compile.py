"""Compile the class of a saga to its definition, and check that it is consistent."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from potok.errors import Location, StateError, TopologyError
from potok.events.event_type import EventType, event_type
from potok.patterns.sagas.declare import (
    ENDS,
    SAGA_MARK,
    Emit,
    SagaDeclaration,
    Send,
    StepDeclaration,
    Together,
)
from potok.patterns.sagas.definition import Definition, Handlers, SagaStep
from potok.patterns.sagas.instance import FORGET
from potok.patterns.sagas.message import Message, has_default, message_type
from potok.patterns.sagas.saga import ON_MARK, TIMER_MARK, Saga
from potok.state.codec import dump_state


def definition_of(cls: type) -> Definition:
    """Compile the class of a saga; raise TopologyError if it is not consistent."""
    said: SagaDeclaration | None = getattr(cls, "__dict__", {}).get(SAGA_MARK)
    if said is None:
        hint = '@potok.saga("checkout", by="order_id", starts=OrderCreated)'
        raise TopologyError(f"{getattr(cls, '__name__', repr(cls))} is not a saga", hint=hint)
    try:
        return _handlers_of(cls, said) if issubclass(cls, Saga) else _Steps(cls, said).compile()
    except TopologyError as error:
        error.at = error.at or said.at
        raise


class _Reads:
    """The events that a saga reads."""

    def __init__(self, said: SagaDeclaration) -> None:
        self._said = said
        self.types: dict[str, EventType] = {}

    def add(self, cls: Any, at: Location | None) -> EventType:
        if not isinstance(cls, type):
            hint = "pass the class: ok=PaymentProcessed"
            raise TopologyError(f"{cls!r:.100} is not an event class", hint=hint, at=at)
        type_ = event_type(cls)
        if type_.name in self.types:
            hint = "an event with two meanings is ambiguous: declare two classes"
            raise TopologyError(f'event "{type_.name}" is used twice in saga "{self._said.name}"', hint=hint, at=at)
        if self._said.by not in names_of(type_):
            text = f'event "{type_.name}" has no field "{self._said.by}", which names the instance'
            raise TopologyError(text, hint=f"add the field {self._said.by}: str to {cls.__name__}", at=at)
        self.types[type_.name] = type_
        return type_

    @property
    def fields(self) -> dict[str, tuple[str, ...]]:
        return {name: names_of(type_) for name, type_ in self.types.items()}


class _Steps:
    def __init__(self, cls: type, said: SagaDeclaration) -> None:
        self._cls, self._said = cls, said
        self._reads = _Reads(said)
        self._sends: dict[str, EventType] = {}
        self._emitted: dict[str, EventType] = {}
        self._roles: dict[str, tuple[str, str]] = {}
        self._known: dict[str, pa.DataType] = {}

    def compile(self) -> Definition:
        said = self._said
        if said.starts is None:
            hint = f'@potok.saga("{said.name}", by="{said.by}", starts=OrderCreated)'
            raise TopologyError(f'saga "{said.name}" does not say which event starts it', hint=hint)
        if said.sends or said.emits:
            hint = "declare them: potok.step(send=...), done = potok.emit(...)"
            raise TopologyError("sends= and emits= are for classes of potok.Saga", hint=hint)
        start = self._event(said.starts, "", "start", said.at)
        groups = self._groups()
        if not groups:
            hint = "payment = potok.step(send=ProcessPayment, ok=PaymentProcessed)"
            raise TopologyError(f'saga "{said.name}" has no steps', hint=hint)
        steps = [
            self._step(name, number, one, group) for number, group in enumerate(groups) for name, one in group.items()
        ]
        emits = self._emits()
        for end, event in said.ends.items():
            self._event(event, "", end, said.at)
        return Definition(
            said.name,
            said.by,
            said.version,
            said.missing,
            said.clock,
            said.keep_ms,
            (start.name,),
            self._reads.fields,
            tuple(self._reads.types.values()),
            tuple(steps),
            self._roles,
            emits,
            tuple(self._sends.values()),
            tuple(self._emitted.values()),
            said.watches,
            tuple(said.ends),
        )

    def _groups(self) -> list[dict[str, StepDeclaration]]:
        items = vars(self._cls).items()
        names = {id(one): name for name, one in items if isinstance(one, StepDeclaration)}
        grouped: dict[int, int] = {}
        for number, (name, item) in enumerate(items):
            for one in item.steps if isinstance(item, Together) else ():
                if id(one) not in names:
                    hint = "name the step: stock = potok.step(...), then potok.together(payment, stock)"
                    raise TopologyError(f'a step of "{name}" has no name', hint=hint, at=one.at)
                if id(one) in grouped:
                    text = f'step "{names[id(one)]}" is in two groups'
                    raise TopologyError(text, hint="name each step in one potok.together", at=one.at)
                grouped[id(one)] = number
        found: dict[object, dict[str, StepDeclaration]] = {}
        for name, item in items:
            if isinstance(item, StepDeclaration):
                if names[id(item)] != name:
                    hint = "write a potok.step of its own for each"
                    raise TopologyError(f'"{names[id(item)]}" and "{name}" are one step', hint=hint, at=item.at)
                found.setdefault(grouped.get(id(item), name), {})[name] = item
        return list(found.values())

    def _step(self, name: str, number: int, one: StepDeclaration, group: Mapping[str, StepDeclaration]) -> SagaStep:
        self._check(one, group)
        before = dict(self._known)
        send = None if one.send is None else self._message(one.send, f'step "{name}"', one.at, self._sends)
        # A compensation may follow a timeout, when the answer is not known.
        undo = None if one.undo is None else self._message(one.undo, f'undo of step "{name}"', one.at, self._sends)
        for role, cls in (("failed", one.failed), ("undone", one.undone), ("undo_failed", one.undo_failed)):
            if cls is not None:
                self._event(cls, name, role, one.at, adds=False)
        self._event(one.ok, name, "ok", one.at)
        if name != list(group)[-1]:
            self._known = before
        elif len(group) > 1:
            for part in group.values():
                self._known |= _types_of(event_type(part.ok))
        return SagaStep(name, number, send, undo, one.undone is not None, one.timeout_ms, one.retry, one.pivot)

    def _check(self, one: StepDeclaration, group: Mapping[str, StepDeclaration]) -> None:
        if one.pivot and len(group) > 1:
            raise TopologyError("a pivot runs alone", hint="leave it out of potok.together", at=one.at)
        if self._said.watches:
            if one.send is not None or one.undo is not None or one.retry.times or one.pivot:
                hint = "a step of a choreography has ok=, failed=, undone=, undo_failed= and timeout="
                raise TopologyError("a choreography sends no commands", hint=hint, at=one.at)
        elif one.undo is None and (one.undone is not None or one.undo_failed is not None):
            raise TopologyError("a step without undo= is not compensated", hint="pass undo=RefundPayment", at=one.at)

    def _event(self, cls: Any, step: str, role: str, at: Location | None, *, adds: bool = True) -> EventType:
        type_ = self._reads.add(cls, at)
        self._roles[type_.name] = (step, role)
        if adds:
            self._known |= _types_of(type_)
        return type_

    def _message(self, send: Send, where: str, at: Location | None, known: dict[str, EventType]) -> Message:
        cls, function = (send, None) if isinstance(send, type) else (_returned(send, where, at), send)
        type_ = message_type(cls)
        _add(type_, known, at)
        message = Message(type_.name, type_.schema, function)
        for field in type_.schema.fields if function is None else ():
            given = self._known.get(field.name)
            if given is None and not has_default(field):
                hint = f"add it to an earlier event, or pass a function: def make(data) -> {cls.__name__}"
                text = f'{where}: no earlier event has the field "{field.name}" of {cls.__name__}'
                raise TopologyError(text, hint=hint, at=at)
            if given is not None and not _becomes(given, field.schema.arrow):
                hint = f"give them one type, or pass a function: def make(data) -> {cls.__name__}"
                text = f'{where}: field "{field.name}" of {cls.__name__} is {field.schema.arrow}, but {given} in events'
                raise TopologyError(text, hint=hint, at=at)
        return message

    def _emits(self) -> dict[str, Message]:
        found: dict[str, Message] = {}
        start = _types_of(event_type(typing.cast(type, self._said.starts)))
        for name, item in vars(self._cls).items():
            if not isinstance(item, Emit):
                continue
            end = item.when or ENDS.get(name)
            if self._said.watches:
                hint = "an event that ends it is passed as completed= or aborted="
                raise TopologyError("a choreography emits nothing", hint=hint)
            if end is None or end not in ENDS.values():
                hint = 'name it done, aborted or stuck, or pass when="completed"'
                raise TopologyError(f'it is not specified when "{name}" is emitted', hint=hint)
            if end in found:
                raise TopologyError(f"two events are emitted at the end {end}", hint=f'remove "{name}"')
            known, self._known = self._known, self._known if end == "completed" else start
            found[end] = self._message(item.event, f'"{name}"', self._said.at, self._emitted)
            self._known = known
        return found


def _handlers_of(cls: type, said: SagaDeclaration) -> Definition:
    if said.starts is not None:
        hint = "mark the handler: @potok.on(OrderCreated, start=True)"
        raise TopologyError("starts= is for sagas of steps", hint=hint)
    reads = _Reads(said)
    events: dict[str, str] = {}
    timers: dict[str, str] = {}
    starts: list[str] = []
    for name, item in _members(cls):
        for taken in getattr(item, ON_MARK, ()):
            type_ = reads.add(taken.event, taken.at)
            _check_arguments(item, 2, f"def {name}(self, event: {taken.event.__name__}) -> None: ...", taken.at)
            events[type_.name] = name
            if taken.start:
                starts.append(type_.name)
        timer = getattr(item, TIMER_MARK, None)
        if timer is not None:
            if timer[0] == FORGET:
                hint = "give it another name; ended instances are removed by keep= of @potok.saga"
                raise TopologyError(f'a timer cannot be called "{FORGET}"', hint=hint, at=timer[1])
            if timer[0] in timers:
                raise TopologyError(f'timer "{timer[0]}" has two handlers', hint="remove one of them", at=timer[1])
            _check_arguments(item, 1, f"def {name}(self) -> None: ...", timer[1])
            timers[timer[0]] = name
    if not starts:
        hint = "mark a handler: @potok.on(OrderCreated, start=True)"
        raise TopologyError(f'no event starts saga "{said.name}"', hint=hint)
    sends: dict[str, EventType] = {}
    emitted: dict[str, EventType] = {}
    for classes, known in ((said.sends, sends), (said.emits, emitted)):
        for one in classes:
            _add(message_type(one), known, said.at)
    return Definition(
        said.name,
        said.by,
        said.version,
        said.missing,
        said.clock,
        said.keep_ms,
        tuple(starts),
        reads.fields,
        tuple(reads.types.values()),
        sends=tuple(sends.values()),
        emitted=tuple(emitted.values()),
        handlers=Handlers(cls, events, timers, _defaults(cls, said)),
    )


def _members(cls: type) -> Iterable[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for kind in reversed(cls.__mro__):
        found |= vars(kind)
    return found.items()


def _defaults(cls: type, said: SagaDeclaration) -> dict[str, Any]:
    """Return the state that an instance begins with."""
    found: dict[str, Any] = {}
    for kind in reversed(cls.__mro__):
        for name in vars(kind).get("__annotations__", {}):
            if name.startswith("_"):
                continue
            if hasattr(Saga, name):
                raise TopologyError(f'"{name}" is an attribute of potok.Saga', hint="choose another name")
            if not hasattr(cls, name):
                raise TopologyError(f'"{name}" has no default', hint=f"write {name}: int = 0")
            found[name] = copy.deepcopy(getattr(cls, name))
    try:
        dump_state(found)
    except StateError as error:
        raise TopologyError(f'the state of saga "{said.name}" cannot be stored: {error}', hint=error.hint) from error
    return found


def _check_arguments(function: Callable[..., Any], count: int, example: str, at: Location | None) -> None:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError as error:
        raise TopologyError(f"{function.__qualname__} cannot be called: {error}", hint=example, at=at) from error


def _add(type_: EventType, known: dict[str, EventType], at: Location | None) -> None:
    same = known.setdefault(type_.name, type_)
    if same.schema.arrow != type_.schema.arrow:
        raise TopologyError(f'two classes declare the message "{type_.name}"', hint="give them two names", at=at)


def _becomes(given: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(given == wanted or (pa.types.is_integer(given) and pa.types.is_floating(wanted)))


def names_of(type_: EventType) -> tuple[str, ...]:
    return tuple(field.name for field in type_.schema.fields)


def _types_of(type_: EventType) -> dict[str, pa.DataType]:
    return {field.name: field.schema.arrow for field in type_.schema.fields}


def _returned(function: Callable[[Any], Any], where: str, at: Location | None) -> type:
    """Return the class that a function says it returns."""
    if not callable(function):
        hint = "pass the class of the command, or a function that returns one"
        raise TopologyError(f"{where}: {function!r:.100} is not a command", hint=hint, at=at)
    try:
        found = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        found = inspect.signature(function).return_annotation
    if not isinstance(found, type):
        hint = "write def charge(order) -> ProcessPayment: ..."
        raise TopologyError(f"{where}: the function does not say which class it returns", hint=hint, at=at)
    return found
