"""The definition of an aggregate, compiled from its class."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

from potok.errors import Location, TopologyError
from potok.events.event_type import EventType, EventTypes, declared_schema_of, event_type
from potok.patterns.aggregates.data import check_data
from potok.patterns.aggregates.declare import (
    AGGREGATE_MARK,
    APPLIES_MARK,
    COMMAND_MARK,
    NAMES,
    AggregateDeclaration,
    CommandDeclaration,
)
from potok.records.schemas.schema import Schema


@dataclasses.dataclass(frozen=True, slots=True)
class CommandType:
    """A command: its class, and the method that decides it."""

    name: str
    cls: type
    method: str
    creates: bool
    doc: str

    @property
    def schema(self) -> Schema:
        return declared_schema_of(self.cls)


@dataclasses.dataclass(frozen=True, slots=True)
class AppliedEvent:
    """An event: its type, its class, and the method that applies it."""

    cls: type
    method: str
    type: EventType


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """An aggregate: plain data and classes, which tasks receive."""

    name: str
    events_topic: str
    cls: type
    commands: dict[str, CommandType]
    events: dict[str, AppliedEvent]

    @property
    def has_creation(self) -> bool:
        return any(command.creates for command in self.commands.values())

    @property
    def event_types(self) -> EventTypes:
        return EventTypes(tuple(event.type for event in self.events.values()))


def definition_of(cls: type) -> Definition:
    """Compile the class of an aggregate; raise TopologyError if it is not consistent."""
    said: AggregateDeclaration | None = cls.__dict__.get(AGGREGATE_MARK)
    if said is None:
        hint = 'write @potok.aggregate("orders", events="order-events") above the class'
        raise TopologyError(f"{cls.__name__} is not an aggregate", hint=hint)
    try:
        return _Compiler(cls, said).compile()
    except TopologyError as error:
        error.at = error.at or said.at
        raise


class _Compiler:
    def __init__(self, cls: type, said: AggregateDeclaration) -> None:
        self._cls, self._said = cls, said

    def compile(self) -> Definition:
        check_data(self._cls, "the state", self._said.at)
        events: dict[str, AppliedEvent] = {}
        for name, method, at in self._marked(APPLIES_MARK):
            one = self._event(name, method, at if isinstance(at, Location) else None)
            if one.type.name in events:
                text = f'event "{one.type.name}" is applied by "{events[one.type.name].method}" and by "{name}"'
                raise TopologyError(text, hint="one method applies an event", at=self._said.at)
            events[one.type.name] = one
        if not events:
            hint = "add a method: @potok.applies def paid(self, event: OrderPaid) -> None: ..."
            raise TopologyError(f'aggregate "{self._said.name}" applies no event', hint=hint)
        commands: dict[str, CommandType] = {}
        for name, method, declared in self._marked(COMMAND_MARK):
            found = self._command(name, method, declared, events)
            if found.name in commands:
                text = f'command "{found.name}" is decided by "{commands[found.name].method}" and by "{name}"'
                raise TopologyError(text, hint="one method decides a command", at=declared.at)
            commands[found.name] = found
        return Definition(self._said.name, self._said.events, self._cls, commands, events)

    def _marked(self, mark: str) -> Iterator[tuple[str, Any, Any]]:
        for name in dir(self._cls):
            method = inspect.getattr_static(self._cls, name)
            if hasattr(method, mark):
                yield name, method, getattr(method, mark)

    def _event(self, name: str, method: Any, at: Location | None) -> AppliedEvent:
        cls, _ = self._argument(name, method, "def paid(self, event: OrderPaid) -> None: ...", at)
        try:
            type_ = event_type(cls)
        except TopologyError as error:
            error.at = error.at or at
            raise
        check_data(cls, f'event "{type_.name}"', at)
        return AppliedEvent(cls, name, type_)

    def _command(
        self, name: str, method: Any, declared: CommandDeclaration, events: dict[str, AppliedEvent]
    ) -> CommandType:
        hint = "def pay(self, command: PayOrder) -> Iterator[OrderPaid]: ..."
        cls, returned = self._argument(name, method, hint, declared.at)
        if not dataclasses.is_dataclass(cls):
            raise TopologyError(f"{cls.__name__} is not a command", hint="write @dataclass above it", at=declared.at)
        check_data(cls, f'command "{cls.__name__}"', declared.at)
        known = {event.cls for event in events.values()}
        for yielded in _yielded(returned):
            if yielded not in known:
                hint = f"add a method: @potok.applies def applied(self, event: {yielded.__name__}) -> None: ..."
                text = f'"{name}" yields {yielded.__name__}, and no method of {self._cls.__name__} applies it'
                raise TopologyError(text, hint=hint, at=declared.at)
        return CommandType(_message_name(cls), cls, name, declared.creates, inspect.getdoc(method) or "")

    def _argument(self, name: str, method: Any, hint: str, at: Location | None) -> tuple[type, Any]:
        """Return the class of the argument of a method, and what the method returns."""
        parameters = list(inspect.signature(method).parameters)
        if len(parameters) != 2:
            text = f'method "{name}" of {self._cls.__name__} takes {len(parameters)} arguments, not self and a message'
            raise TopologyError(text, hint=f"write {hint}", at=at)
        try:
            found = typing.get_type_hints(method, localns=NAMES.get(self._cls))
        except NameError as error:
            hint = "declare the class before the aggregate, at the top of a module"
            raise TopologyError(f'an annotation of "{name}" is not known: {error}', hint=hint, at=at) from error
        cls = found.get(parameters[1])
        if not isinstance(cls, type):
            text = f'method "{name}" of {self._cls.__name__} does not say which class "{parameters[1]}" has'
            raise TopologyError(text, hint=f"write {hint}", at=at)
        return cls, found.get("return")


def _message_name(cls: type) -> str:
    return event_type(cls).name if "__potok_event__" in cls.__dict__ else cls.__name__


def _yielded(returned: Any) -> Iterator[type]:
    """Yield the classes in the type that a command returns: an iterator or a list of one, or of a union."""
    origin, arguments = typing.get_origin(returned), typing.get_args(returned)
    if origin in (typing.Union, types.UnionType):
        for one in arguments:
            yield from _yielded(one)
    elif origin in (collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator, list, tuple):
        yield from _yielded(arguments[0])
    elif isinstance(returned, type) and returned is not types.NoneType and dataclasses.is_dataclass(returned):
        yield returned
