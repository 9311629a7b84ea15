"""Declare event classes and the functions that convert their older versions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.records.conversion.convert import spelled
from potok.records.declared_class import choice_type
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Field, Schema

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[[dict[str, Any]], Any])

TYPE_FIELD = "event_type"
"""The field of a stream of several event types that says which one a value is."""

FORGOTTEN = "potok.subject.forgotten"
"""The type of `SubjectForgotten`, which streams skip unless it is among their types."""

_MARK = "__potok_event__"
_upcasters: dict[tuple[str, int], Function] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class EventType:
    """The name, current version and fields of an event class, and its upcasters by the version they read."""

    name: str
    version: int
    schema: Schema
    upcasters: tuple[tuple[int, Function], ...] = ()

    @property
    def personal(self) -> dict[str, str]:
        """Return the personal fields, each with the field that names its subject."""
        return {field.name: field.subject for field in self.schema.fields if field.subject}


@dataclasses.dataclass(frozen=True, slots=True)
class EventTypes:
    """The event types of one topic, and the envelope they are read from: `any`, `cloudevents` or `dictionary`. Events
    of other types are dead letters, or not read at all if `selects`.
    """

    types: tuple[EventType, ...]
    envelope: str = "any"
    selects: bool = False

    @property
    def schema(self) -> Schema:
        """Return the type of the values: that of the only class, or all fields of all classes after the event type."""
        if len(self.types) == 1:
            return self.types[0].schema
        fields: dict[str, Field] = {TYPE_FIELD: Field(TYPE_FIELD, declared_schema_of(str), nullable=False)}
        for type_ in self.types:
            for field in type_.schema.fields:
                known = fields.get(field.name)
                if known is not None and known.schema.arrow != field.schema.arrow:
                    hint = "read the types as two streams, or give the fields one type"
                    text = f'event types of one stream differ in the type of field "{field.name}" ("{type_.name}")'
                    raise TopologyError(text, hint=hint)
                fields.setdefault(field.name, Field(field.name, field.schema, nullable=True))
        whole = Schema.struct(list(fields.values()))
        classes = {type_.name: type_.schema.declared for type_ in self.types if type_.schema.declared is not None}
        return dataclasses.replace(whole, arrow=choice_type(whole.arrow, classes))


def declared_schema_of(declared: object) -> Schema:
    """Return the schema of data that is not that of an event."""
    found = declared_schema(declared)
    assert found is not None
    refuse_personal(found, getattr(declared, "__name__", "the value"))
    return found


def event(name: str, *, version: int = 1) -> Callable[[C], C]:
    """Declare a dataclass as an event.

    >>> @event("order.created", version=2)
    ... @dataclasses.dataclass
    ... class OrderCreated:
    ...     order_id: str

    Args:
        name: The type in the envelope.
        version: The version of its fields; older ones need `@potok.upcast`.
    """
    if not name or version < 1:
        hint = 'write @potok.event("order.created", version=2)'
        raise TopologyError("an event needs a name, and a version of at least 1", hint=hint)

    def mark(cls: C) -> C:
        setattr(cls, _MARK, (name, version))
        return cls

    return mark


def upcast(name: str, *, from_version: int) -> Callable[[F], F]:
    """Declare the function that converts the data of `from_version` to the next version.

    It returns a dict, a list of dicts (the event is split) or None (the event is dropped).
    """

    if from_version < 1:
        raise TopologyError("an upcast reads a version of at least 1", hint="write from_version=1")

    def keep(function: F) -> F:
        known = _upcasters.get((name, from_version))
        if known is not None and _source_line(known.callable) != _source_line(function):
            text = f'event type "{name}" has two upcasts from version {from_version}'
            raise TopologyError(text, hint=f"remove {_source_line(known.callable)} or {_source_line(function)}")
        _upcasters[name, from_version] = Function.of(function, (1,))
        return function

    return keep


def _source_line(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"


def event_name(value: object) -> str | None:
    """Return the event type that the class of a value declares."""
    mark = getattr(type(value), _MARK, None)
    return None if mark is None else str(mark[0])


def event_type(cls: type) -> EventType:
    """Return what an event class declares."""
    mark = cls.__dict__.get(_MARK)
    if mark is None or not dataclasses.is_dataclass(cls):
        hint = 'decorate it: @potok.event("order.created") above @dataclass'
        raise TopologyError(f"{cls.__name__} is not an event class", hint=hint)
    name, version = mark
    steps = tuple(
        (at, function) for (of, at), function in sorted(_upcasters.items(), key=lambda item: item[0]) if of == name
    )
    schema = declared_schema(cls)
    assert schema is not None
    _check_personal(cls, schema)
    return EventType(name, version, schema, steps)


def _check_personal(cls: type, schema: Schema) -> None:
    fields = {field.name: field for field in schema.fields}
    for field in schema.fields:
        refuse_personal(field.schema, f'field "{field.name}" of {cls.__name__}')
        if not field.subject:
            continue
        named = fields.get(field.subject)
        if named is None or named.subject or named.schema.arrow not in (pa.string(), pa.int64()):
            hint = 'name a field of str or int that is not personal: personal(subject="user_id")'
            text = (
                f'field "{field.name}" of {cls.__name__} has the subject "{field.subject}", which is not such a field'
            )
            raise TopologyError(text, hint=hint)


def refuse_personal(schema: Schema, subject: str) -> None:
    """Raise if a schema has a personal field: outside of the fields of an event it would not be encrypted."""
    marked = next((field.name for field in schema.fields if field.subject), None)
    if marked is not None:
        hint = "mark fields of classes with @potok.event; elsewhere they would be stored in plain text"
        raise TopologyError(f'{subject} has the personal field "{marked}"', hint=hint)
    for inner in (*(field.schema for field in schema.fields), schema.item, schema.key):
        if inner is not None:
            refuse_personal(inner, subject)


def event_types(classes: Sequence[type], envelope: str = "any") -> EventTypes:
    """Return the types of a topic; each name may be declared once."""
    found = tuple(event_type(cls) for cls in classes)
    names = [type_.name for type_ in found]
    if not names:
        raise TopologyError("a stream of events needs types", hint="pass types=[OrderCreated]")
    for name in names:
        if names.count(name) > 1:
            hint = "keep the class of the newest version, and upcast older ones"
            raise TopologyError(f'event type "{name}" is declared by two classes', hint=hint)
    return EventTypes(found, envelope)


def upcasted(data: Any, version: int, type_: EventType) -> list[Any]:
    """Return the data of an event in the current version of its type; raise ValueError where there is no path."""
    if version < type_.version and not isinstance(data, dict):
        raise ValueError(f'the data of event type "{type_.name}" is not an object')
    if version > type_.version:
        raise ValueError(
            f'event type "{type_.name}" has version {version}, but the program knows only up to {type_.version}'
        )
    steps, found = dict(type_.upcasters), [data]
    for at in range(version, type_.version):
        if at not in steps:
            raise ValueError(f'no upcast of event type "{type_.name}" from version {at} to {at + 1}')
        found = [new for old in found for new in _results(_called(steps[at], old, type_.name, at), type_.name, at)]
    return found


def _called(function: Function, data: Any, name: str, version: int) -> Any:
    try:
        return function(data)
    except Exception as error:
        text = f'the upcast of "{name}" from version {version} failed: {type(error).__name__}: {spelled(error)}'
        raise ValueError(text) from error


def _results(result: Any, name: str, version: int) -> list[Any]:
    results = [] if result is None else result if isinstance(result, list) else [result]
    if not all(isinstance(item, dict) for item in results):
        raise ValueError(f'the upcast of "{name}" from version {version} returned {result!r:.200}, not a dict')
    return results
