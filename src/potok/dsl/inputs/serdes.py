"""Translate declared keys, values and timestamps into the serdes and timestamps of a topology."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from typing import Any

from potok.duration import Duration, to_ms
from potok.errors import Location, PotokError, SchemaError, TopologyError
from potok.events.event_type import refuse_personal
from potok.expressions.function import Function
from potok.records.formats.default import default_format
from potok.records.formats.registered.declare import RegisteredType, for_topic
from potok.records.formats.registry import format_named
from potok.records.schema_registry.subjects import Side
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.topology.nodes import Aggregation, Serde, Timestamps
from potok.topology.nodes.sources import TimeNotion


def schema_of(declared: object, at: Location | None) -> Schema | None:
    try:
        found = declared_schema(declared)
        if found is not None:
            refuse_personal(found, "the value")
        return found
    except PotokError as error:
        error.at = error.at or at
        raise


def fold_of(aggregator: Function, initializer: Any, declared: object, at: Location | None) -> Aggregation:
    """Return the aggregation of a function and an initial value, or a function that returns one."""
    make = Function.of(initializer, (0,)) if callable(initializer) else None
    initial = initializer() if make is not None else initializer
    return Aggregation("fold", aggregator, initial, make, _state_schema(declared, initial, at))


def _state_schema(declared: object, initial: object, at: Location | None) -> Schema | None:
    """Return the type of an aggregate: the declared one, or the dataclass of its initial value."""
    found = schema_of(declared, at)
    if found is not None or not is_dataclass(initial) or isinstance(initial, type):
        return found
    try:
        return declared_schema(type(initial))
    except SchemaError:
        # Its fields are not data of known types, so its values are dynamic.
        return None


def serde_of(
    declared: object, format_name: str | None, at: Location | None, topic: str = "", side: Side = "value"
) -> Serde:
    if isinstance(declared, RegisteredType):
        _refuse_second(format_name, side, at)
        with _located(at):
            return Serde(*declared.read(topic, side))
    schema = schema_of(declared, at)
    check_format(format_name, at)
    chosen = format_name or default_format(schema.arrow if schema else None)
    with _located(at):
        return Serde(for_topic(chosen, topic, side) if topic else chosen, schema)


def sink_format(declared: object, format_name: str | None, topic: str, side: Side, at: Location | None) -> str:
    """Return the format in which a sink writes keys or values; "" if it follows from their type."""
    if declared is None:
        check_format(format_name, at)
        with _located(at):
            return for_topic(format_name or "", topic, side)
    if not isinstance(declared, RegisteredType):
        hint = f'write {side}=avro("{topic}-{side}"), or {side}_format=; the type of what is written is known'
        raise TopologyError(f"{side}= of a sink is a schema of a registry", hint=hint, at=at)
    _refuse_second(format_name, side, at)
    with _located(at):
        return declared.write(topic, side)


def _refuse_second(format_name: str | None, side: Side, at: Location | None) -> None:
    if format_name is not None:
        hint = f"leave out {side}_format="
        raise TopologyError(f"{side}= already names the format of a registry", hint=hint, at=at)


@contextmanager
def _located(at: Location | None) -> Iterator[None]:
    """Give errors the location of the call."""
    try:
        yield
    except PotokError as error:
        error.at = error.at or at
        raise


def timestamps_of(
    timestamp: str | Callable[..., Any] | None, format_: str | None, max_jump: Duration | None, at: Location | None
) -> Timestamps:
    found = _timestamps(timestamp, at)
    if format_ and found.function is None:
        hint = 'name the field too: timestamp="created_at"'
        raise TopologyError("timestamp_format= needs a text field", hint=hint, at=at)
    return replace(found, format=format_ or "", max_jump_ms=None if max_jump is None else to_ms(max_jump))


def _timestamps(timestamp: str | Callable[..., Any] | None, at: Location | None) -> Timestamps:
    if timestamp is None:
        return Timestamps()
    if callable(timestamp):
        return Timestamps(function=Function.of(timestamp, (1, 2)), text="a function")
    if timestamp in ("ingestion", "processing"):
        return Timestamps(TimeNotion(timestamp), text=f"{timestamp} time")
    if not timestamp:
        raise TopologyError("timestamp= is empty", hint='name a field: timestamp="created_at"', at=at)
    return Timestamps(function=field_function(timestamp, at), text=f'field "{timestamp}"')


def check_format(name: str | None, at: Location | None) -> None:
    """Raise for a format that does not exist, with the location of the call."""
    if name and name.lower() == "cloudevents":
        hint = 'read events with builder.events(...), and write them with .to(..., envelope="cloudevents")'
        raise TopologyError("cloudevents is a format of SQL", hint=hint, at=at)
    if name:
        with _located(at):
            format_named(name)


def field_function(name: str, at: Location | None) -> Function:
    """Return the function that reads a field of the value."""

    def field(v: Any) -> Any:
        return v[name]

    return replace(Function.of(field, (1,)), name=f'field "{name}"', location=at)
