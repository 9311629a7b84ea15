"""Formats by name."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from potok.errors import SchemaError
from potok.extras import need_extra
from potok.records.formats.format import Format
from potok.records.formats.guarded import GuardedFormat
from potok.records.formats.options import with_options

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
    "avro": ("avro.avro_format", "AvroFormat"),
    "protobuf": ("protobuf.protobuf_format", "ProtobufFormat"),
    "protobuf_nosr": ("protobuf.protobuf_format", "ProtobufFormat"),
    "debezium": ("debezium.debezium_format", "DebeziumFormat"),
    "debezium_envelope": ("debezium.debezium_format", "EnvelopeFormat"),
    "debezium_key": ("debezium.debezium_format", "DebeziumKeyFormat"),
    "windowed": ("windowed", "WindowedFormat"),
    "session": ("windowed", "SessionFormat"),
}

_EXTRAS = {"avro": "avro", "protobuf": "protobuf", "protobuf_nosr": "protobuf"}

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
