"""Types of keys and values that a schema registry has: `value=avro("orders-value")`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from potok.errors import SchemaError
from potok.records.formats.registered.registered_format import RegisteredFormat
from potok.records.formats.registry import unguarded
from potok.records.formats.unwrapped import UnwrappedFormat, only_field
from potok.records.schema_registry.connection import current_connection
from potok.records.schema_registry.subjects import Side, strategy_of, subject_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

REGISTERED = ("avro_sr", "protobuf_sr", "json_sr")
"""Formats whose values name schemas of a registry."""

_FULL_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RegisteredType:
    """A type in a schema registry; without a subject, the one that the topic has by the subject name strategy."""

    format: str
    subject: str | None = None
    declared: object = None
    id: int | None = None
    full_name: str | None = None
    registry: str | None = None

    def read(self, topic: str, side: Side) -> tuple[str, Schema]:
        """Return the format and the type for reading a topic. A type that is not declared is the latest schema of the
        subject, or that of the id, which is then the schema of the reader."""
        name = self.write(topic, side)
        if self.declared is not None:
            declared = declared_schema(self.declared)
            assert declared is not None
            return name, declared
        format_ = registered_format(name)
        found = format_.pinned() or format_.client.latest(format_.subject)
        inferred = format_.infer(found, sql=False)
        if inferred is None:
            hint = "declare the type: avro(subject, MyClass)"
            raise SchemaError(f"schema {found.id} of the registry has no columns", hint=hint)
        return name if self.id is not None else f"{name};id={found.id}", inferred

    def write(self, topic: str, side: Side) -> str:
        """Return the format for writing a topic."""
        given = {"subject": self.subject, "full_name": self._name, "registry": self.registry, "id": self.id}
        options = "".join(f";{option}={value}" for option, value in given.items() if value is not None)
        return for_topic(self.format + options, topic, side)

    @property
    def _name(self) -> str | None:
        if self.full_name is not None or not isinstance(self.declared, type):
            return self.full_name
        return self.declared.__name__ if _FULL_NAME.fullmatch(self.declared.__name__) else None


def avro(
    subject: str | None = None,
    declared: object = None,
    *,
    id: int | None = None,
    full_name: str | None = None,
    registry: str | None = None,
) -> RegisteredType:
    """Avro with a schema registry, as the type of a key or a value.

    >>> kind = avro("orders-value", id=7)

    Args:
        subject: The subject; by default that of the topic.
        declared: The type, as for `StreamsBuilder.stream`. Without one, it is the latest schema of the subject.
        id: The schema, by its id, in place of the latest one. Values are also written with it.
        full_name: The name of the record in a schema that is registered.
        registry: The URL of the registry, or `env:NAME` of a variable with it, in place of the settings.
    """
    return RegisteredType("avro_sr", subject, declared, id, full_name, _checked(registry))


def protobuf(
    subject: str | None = None,
    declared: object = None,
    *,
    id: int | None = None,
    full_name: str | None = None,
    registry: str | None = None,
) -> RegisteredType:
    """Protobuf with a schema registry, as the type of a key or a value. The arguments are those of `avro`; `full_name`
    also selects a message of a schema that has several.

    >>> kind = protobuf("orders-value", full_name="shop.Order")
    """
    return RegisteredType("protobuf_sr", subject, declared, id, full_name, _checked(registry))


def json_schema(
    subject: str | None = None,
    declared: object = None,
    *,
    id: int | None = None,
    full_name: str | None = None,
    registry: str | None = None,
) -> RegisteredType:
    """JSON with a JSON Schema in a registry, as the type of a key or a value. The arguments are those of `avro`.

    >>> kind = json_schema("orders-value", "order_id string, amount double")
    """
    return RegisteredType("json_sr", subject, declared, id, full_name, _checked(registry))


def _checked(registry: str | None) -> str | None:
    """Refuse a password in a format, which is shown and stored with the query."""
    if registry is not None and "@" in registry:
        hint = 'write registry="env:NAME" and set that variable, or use the setting schema_registry'
        raise SchemaError("the URL of a registry in a program cannot contain a login", hint=hint)
    if registry is not None and ";" in registry:
        raise SchemaError("the URL of a registry cannot contain a semicolon", hint="write %3B")
    return registry


def is_registered(format_name: str) -> bool:
    """Whether values of a format name schemas of a registry."""
    return format_name.partition(";")[0].lower() in REGISTERED


def registered_format(format_name: str) -> RegisteredFormat:
    """Return a format of a schema registry by its name, without its wrapping."""
    found = unguarded(format_name)
    return cast(RegisteredFormat, found.inner if isinstance(found, UnwrappedFormat) else found)


def announce(format_name: str, schema: Schema | None) -> None:
    """Register the schema with which values of a type are written in a format of a registry, so that a refusal is known
    before there are values. Raises `RegistryRefused`, and `SchemaError` if neither a type nor the registry says how
    values are written."""
    if not is_registered(format_name):
        return
    if schema is None:
        format_ = registered_format(format_name)
        if format_.writer_schema() is None:
            format_.needed(None)
        return
    if isinstance(unguarded(format_name), UnwrappedFormat) and schema.kind == "struct":
        schema = only_field(schema, format_name)
    registered_format(format_name).announce(schema)


def for_topic(format_name: str, topic: str, side: Side) -> str:
    """Return a format of a registry with the subject of a topic, unless it names one; others stay as they are."""
    if not is_registered(format_name):
        return format_name
    format_ = registered_format(format_name)
    if format_.subject:
        return format_name
    connection = current_connection()
    strategy = "topic" if connection is None else strategy_of(connection, side)
    return f"{format_name};subject={subject_of(topic, side, format_.full_name, strategy)}"
