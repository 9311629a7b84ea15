"""Messages that sagas send: their types, and how they are made of the data of an instance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from potok.errors import TopologyError
from potok.events.event_type import EventType, declared_schema_of, event_type
from potok.records.rows import column_of
from potok.records.schemas.schema import NO_DEFAULT, Field, Schema

_PLAIN: dict[pa.DataType, tuple[type, ...]] = {
    pa.string(): (str,),
    pa.float64(): (float, int),
    pa.int64(): (int,),
}
"""Types whose values are recognised without Arrow, which takes half a millisecond for a single row."""


class MessageNotMade(ValueError):
    """The data of an instance does not make a command or an event: an operator has to decide."""


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """A command or an event that a saga sends: its type, and how it is made of the data of the instance."""

    type: str
    schema: Schema
    function: Callable[[Any], Any] | None = None

    def make(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the message; raise MessageNotMade if they are not complete or do not fit."""
        if self.function is None:
            found = {field.name: data[field.name] for field in self.schema.fields if field.name in data}
        else:
            found = self._called(self.function, data)
        wrong = next(filter(None, (_misfit(field, found) for field in self.schema.fields)), None)
        if wrong is not None:
            raise MessageNotMade(f'"{self.type}" cannot be sent: {wrong}')
        return found

    def _called(self, function: Callable[[Any], Any], data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            made = function(Data(data))
        except Exception as error:
            text = f'the function that makes "{self.type}" raised {type(error).__name__}: {error}'
            raise MessageNotMade(text[:1000]) from error
        if not dataclasses.is_dataclass(made) or isinstance(made, type) or message_type(type(made)).name != self.type:
            raise MessageNotMade(f'the function that makes "{self.type}" returned {made!r:.200}')
        return dataclasses.asdict(made)


class Data(dict[str, Any]):
    """The fields of the events of an instance so far, also as attributes."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(f'no event of this instance had a field "{name}"') from None


def message_type(cls: type) -> EventType:
    """Return the type of a command: a declared event, or a dataclass under the name of its class."""
    if "__potok_event__" in cls.__dict__:
        return event_type(cls)
    if not dataclasses.is_dataclass(cls):
        hint = f'write @potok.event("...") and @dataclass above class {cls.__name__}'
        raise TopologyError(f"{cls.__name__} is not a message", hint=hint)
    return EventType(cls.__name__, 1, declared_schema_of(cls))


def fields_of(made: Any, types: Mapping[str, EventType]) -> tuple[str, dict[str, Any]]:
    """Return the type and the fields of a message that a handler sends; `types` are those it may send."""
    known = ", ".join(types) or "none"
    if not dataclasses.is_dataclass(made) or isinstance(made, type):
        raise TypeError(f"a message is an instance of a dataclass, not {made!r:.200}")
    name = message_type(type(made)).name
    if name not in types:
        raise TypeError(f'"{name}" is not declared as a message of this saga; declared are: {known}')
    found = dataclasses.asdict(made)
    wrong = next(filter(None, (_misfit(field, found) for field in types[name].schema.fields)), None)
    if wrong is not None:
        raise ValueError(f'"{name}" cannot be sent: {wrong}')
    return name, found


def _misfit(field: Field, found: Mapping[str, Any]) -> str:
    """Return why the value of a field does not fit; an empty text if it does."""
    value = found.get(field.name)
    if value is None:
        return "" if has_default(field) else f'no event of the instance had the field "{field.name}"'
    plain = _PLAIN.get(field.schema.arrow)
    if plain is not None and isinstance(value, plain) and not isinstance(value, bool):
        return ""
    errors = column_of([{field.name: value}], Schema.struct([field])).errors
    return errors.get(0, "")


def has_default(field: Field) -> bool:
    """Whether a message may lack the field."""
    return field.nullable or field.default is not NO_DEFAULT
