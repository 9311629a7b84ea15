"""Decide commands and fold events: the part of an aggregate that knows neither records nor cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from potok.errors import Location
from potok.patterns.aggregates.data import BadData, Commands, Json, Rows, to_data
from potok.patterns.aggregates.declare import RejectedError
from potok.patterns.aggregates.definition import CommandType, Definition
from potok.patterns.aggregates.events import Event, EventWriter
from potok.patterns.aggregates.messages import Result, Status, expectation, fits
from potok.records.conversion.convert import spelled

_LONGEST = 1_000
"""How much of the text of an error a result holds."""

_PACKAGE = str(Path(__file__).parents[2]) + os.sep


class Versioned(NamedTuple):
    """An aggregate: how many events it has had, and its state as plain data.

    An event that an upcast has split or dropped still counts as the one that was written.
    """

    version: int
    state: dict[str, Any] | None


MISSING = Versioned(0, None)


class Given(NamedTuple):
    """A command as it was sent."""

    id: str
    value: bytes | None
    expected: str
    aggregate_id: str
    at: int


class Decision(NamedTuple):
    """What follows from a command. Unless it is accepted, the aggregate is as before."""

    result: Result
    after: Versioned
    events: list[Event]


class Machine:
    """The transitions of one aggregate. `identify` returns the id of the event of a command by its number."""

    def __init__(self, definition: Definition, writer: EventWriter | None = None) -> None:
        self.definition, self._writer = definition, writer
        self._guarded = _guarded(definition.cls)
        self._has_creation = definition.has_creation
        self._commands, self._rows = Commands(), Rows(definition.cls)
        self._codecs = {name: Json(one.cls) for name, one in definition.commands.items()}

    def instance(self, state: dict[str, Any] | None) -> Any:
        """Return an aggregate in a state; None is the state before the first event."""
        cls = self.definition.cls
        return cls() if state is None else self._rows.instance(state)

    def folded(self, before: Versioned, events: Iterable[Event], count: int = 1) -> Versioned:
        """Apply what `count` records hold. What a method raises passes through."""
        instance = self.instance(before.state)
        for event in events:
            self._apply(instance, event)
        return Versioned(before.version + count, to_data(instance))

    def _apply(self, instance: Any, event: Event) -> None:
        getattr(instance, event.applied.method)(event.instance)

    def decide(self, given: Given, before: Versioned, identify: Callable[[int], str]) -> Decision:
        """Decide a command. Nothing that goes wrong in it raises: it is in the result."""
        name = ""
        try:
            name, command, expected = self._read(given)
        except ValueError as error:
            return self._refused(given, before, name or _name_in(given.value), "invalid", str(error))
        if not fits(before.version, expected):
            text = f"the aggregate has version {before.version}, not {expected}"
            if isinstance(expected, str):
                text = f"the aggregate {'exists' if before.version else 'does not exist'}"
            return self._refused(given, before, name, "wrong_version", text)
        declared = self.definition.commands[name]
        if self._has_creation and declared.creates == (before.version > 0):
            return self._refused(given, before, name, "rejected", f"{_existence(self.definition, given, before)}")
        try:
            events, after = self._decided(declared, command, given, before, identify)
        except RejectedError as error:
            return self._refused(given, before, name, "rejected", error.message or "rejected")
        except Exception as error:  # noqa: BLE001 - the user's methods may raise anything
            text = f"{spelled(error, longest=_LONGEST)}{_place_of(error)}"
            return self._refused(given, before, name, "failed", text, type(error).__name__)
        rendered = [event.rendered() for event in events]
        result = Result(given.id, name, given.aggregate_id, "accepted", after.version, rendered, at=given.at)
        return Decision(result, after, events)

    def _read(self, given: Given) -> tuple[str, Any, str | int]:
        name, data = self._commands.read(given.value)
        codec = self._codecs.get(name)
        if codec is None:
            known = ", ".join(self._codecs)
            raise BadData(f'aggregate "{self.definition.name}" has no command "{name:.100}"; it has {known}')
        try:
            command = codec.decode(data)
        except BadData as error:
            raise BadData(f"data of {name}: {error}") from error
        return name, command, expectation(given.expected)

    def _decided(
        self, declared: CommandType, command: Any, given: Given, before: Versioned, identify: Callable[[int], str]
    ) -> tuple[list[Event], Versioned]:
        instance, events, writer = self.instance(before.state), list[Event](), self._writer
        assert writer is not None
        # Only an event may change the aggregate.
        instance.__class__ = self._guarded
        for one in _each(getattr(instance, declared.method)(command)):
            number = len(events)
            event = writer.of_instance(one, identify(number), before.version + number + 1, given.at)
            object.__setattr__(instance, "__class__", self.definition.cls)
            self._apply(instance, event)
            instance.__class__ = self._guarded
            events.append(event)
        if not events:
            return events, before
        # Events alone decide the state, even if the method has changed the aggregate that it was given.
        after = self.folded(before, events, len(events))
        self.instance(after.state)  # Raises if a method stored what the field cannot hold.
        return events, after

    def _refused(
        self, given: Given, before: Versioned, name: str, status: Status, reason: str, error: str | None = None
    ) -> Decision:
        result = Result(given.id, name, given.aggregate_id, status, before.version, [], reason, error, given.at)
        return Decision(result, before, [])


def _guarded(cls: type) -> type:
    """Return a class like another, whose instances cannot be changed."""

    def refuse(self: Any, name: str, value: Any) -> None:  # noqa: ARG001 - as every __setattr__
        raise AttributeError(
            f'a command must not change "{name}": yield an event, and change it where the event is applied'
        )

    members = {"__slots__": (), "__setattr__": refuse, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (cls,), members)


def _each(yielded: Any) -> Iterator[Any]:
    """Yield the events that a command returned, one after the other while it runs; one event alone is an event."""
    if yielded is None:
        return
    if isinstance(yielded, Iterator | list | tuple):
        yield from yielded
    else:
        yield yielded


def _existence(definition: Definition, given: Given, before: Versioned) -> str:
    said = "exists" if before.version else "does not exist"
    return f'"{given.aggregate_id}" of aggregate "{definition.name}" {said}'


def _place_of(error: BaseException) -> str:
    """Return the innermost line of the user's program that raised an error."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not os.path.abspath(file).startswith(_PACKAGE):
            found = f", at {Location(file, trace.tb_lineno)}"
        trace = trace.tb_next
    return found


def _name_in(value: bytes | None) -> str:
    """Return the name of the command in a value that is not a command of the aggregate, if it has one."""
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return ""
    name = found.get("command") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""
