"""Formats by name."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from typing import Any, cast

from potok.errors import SchemaError
from potok.extras import need_extra
from potok.records.formats.format import Format
from potok.records.formats.guarded import GuardedFormat
from potok.records.formats.unwrapped import UnwrappedFormat

_FORMATS = {
    "json": ("json.json_format", "JsonFormat"),
    "delimited": ("delimited", "DelimitedFormat"),
    "text": ("text", "TextFormat"),
    "int32": ("numbers", "INT32"),
    "int64": ("numbers", "INT64"),
    "float32": ("numbers", "FLOAT32"),
    "float64": ("numbers", "FLOAT64"),
    "raw": ("raw", "RawFormat"),
    "none": ("none", "NoneFormat"),
    "kafka": ("kafka", "KafkaFormat"),
    "sql_json": ("lenient.json_format", "LenientJsonFormat"),
    "cloudevents": ("lenient.json_format", "LenientJsonFormat"),
    "sql_delimited": ("lenient.delimited_format", "LenientDelimitedFormat"),
    "avro": ("avro_format", "AvroFormat"),
    "avro_sr": ("registered.avro", "RegisteredAvroFormat"),
    "protobuf_sr": ("registered.protobuf", "RegisteredProtobufFormat"),
    "json_sr": ("registered.json", "RegisteredJsonFormat"),
    "protobuf": ("protobuf_format", "ProtobufFormat"),
    "protobuf_nosr": ("protobuf_format", "ProtobufFormat"),
    "debezium": ("debezium.debezium_format", "DebeziumFormat"),
    "debezium_envelope": ("debezium.debezium_format", "EnvelopeFormat"),
    "debezium_key": ("debezium.debezium_format", "DebeziumKeyFormat"),
    "windowed": ("windowed", "WindowedFormat"),
    "session": ("windowed", "SessionFormat"),
}

_EXTRAS = {
    "avro": "avro",
    "avro_sr": "avro",
    "protobuf_sr": "protobuf",
    "protobuf": "protobuf",
    "protobuf_nosr": "protobuf",
}

_ALIASES = {
    "csv": "delimited",
    "string": "text",
    "integer": "int32",
    "int": "int32",
    "long": "int64",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "raw",
}


def canonical_name(name: str) -> str:
    """Return the name of a format as `describe` shows it: `CSV` is `delimited`. Options stay."""
    plain, semicolon, options = name.partition(";")
    return _ALIASES.get(plain.lower(), plain.lower()) + semicolon + options


def format_named(name: str) -> Format:
    """Return the format of this name, for example `format_named("json")`, in any case; Kafka's names are accepted too.

    Options follow the name: `"sql_json;wrap=false"` is a struct's only field, unwrapped.
    """
    return GuardedFormat(unguarded(name))


def unguarded(name: str) -> Format:
    """Return the format itself, which may raise unexpected errors."""
    plain, _, options = name.partition(";")
    wanted = canonical_name(plain)
    if wanted not in _FORMATS:
        raise SchemaError(f'there is no format "{plain}"', hint=f"use one of {', '.join(_FORMATS)}")
    if wanted in _EXTRAS:
        need_extra(f"the format {wanted}", _EXTRAS[wanted])
    module, attribute = _FORMATS[wanted]
    found = getattr(import_module(f"potok.records.formats.{module}"), attribute)
    if options:
        return with_options(found, wanted, options)
    return cast(Format, found() if isinstance(found, type) else found)


_BOOLEANS = {"true": True, "false": False}
# A value may be the semicolon itself, but only alone.
_OPTION = re.compile(r"(\w+)=(;|[^;]+)(?:;|$)")


def with_options(found: Any, name: str, options: str) -> Format:
    """Return the format with these options; every format has `wrap`, the others are fields of its class."""
    given = _parse(name, options)
    wrap = given.pop("wrap", "true")
    if wrap.lower() not in _BOOLEANS:
        raise SchemaError(f'format "{name}" cannot have wrap={wrap}', hint="write wrap=true or wrap=false")
    full = f"{name};{options}"
    known = {field.name for field in dataclasses.fields(found)} - {"name"} if isinstance(found, type) else set()
    for option in given.keys() - known:
        hint = f"the options are {', '.join(sorted(known | {'wrap'}))}"
        raise SchemaError(f'format "{name}" has no option "{option}"', hint=hint)
    made = cast(Format, found(**given, name=full) if isinstance(found, type) else found)
    return made if _BOOLEANS[wrap.lower()] else UnwrappedFormat(made, full)


def _parse(name: str, options: str) -> dict[str, str]:
    given: dict[str, str] = {}
    position = 0
    while position < len(options):
        found = _OPTION.match(options, position)
        if found is None:
            hint = "write option=value behind a semicolon, for example ;wrap=false"
            raise SchemaError(f'"{options}" is not an option of format "{name}"', hint=hint)
        given[found[1].lower()] = found[2]
        position = found.end()
    return given
