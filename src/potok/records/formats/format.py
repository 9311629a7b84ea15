"""What a format is, and how to find one by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.schemas.schema import Schema

Column: TypeAlias = pa.Array | list[Any]
"""A typed column, or a list of plain Python objects where no type was declared."""


@dataclass(slots=True)
class Decoded:
    """One value for each input, null where the input was null or is in `errors`."""

    column: Column
    errors: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Encoded:
    """Bytes for each input, null where the input was null or is in `errors`."""

    values: pa.Array
    errors: dict[int, str] = field(default_factory=dict)


def binary_column(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The bytes of a column of bytes or text, in one piece."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return whole if pa.types.is_binary(whole.type) else whole.cast(pa.binary())


class Format(Protocol):
    """Turns bytes into values and back. It never raises for what a record holds: such rows are in `errors`."""

    @property
    def name(self) -> str: ...

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        """The values of a binary column.

        With `columns`, only these fields of a struct are read, and only these are checked: what the topology
        does not use cannot be wrong.
        """
        ...

    def encode(self, column: Column, schema: Schema | None) -> Encoded: ...


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
    "sql_delimited": ("lenient.delimited_format", "LenientDelimitedFormat"),
    "avro": ("avro.avro_format", "AvroFormat"),
    "protobuf": ("protobuf.protobuf_format", "ProtobufFormat"),
    "protobuf_nosr": ("protobuf.protobuf_format", "ProtobufFormat"),
    "windowed": ("windowed", "WindowedFormat"),
    "session": ("windowed", "SessionFormat"),
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
    """The name of a format as `describe` shows it: `CSV` is `delimited`. Options stay."""
    plain, semicolon, options = name.partition(";")
    return _ALIASES.get(plain.lower(), plain.lower()) + semicolon + options


def format_named(name: str) -> Format:
    """The format of this name, for example `format_named("json")`. Upper case and Kafka's names do too.

    Options stand behind the name: `"sql_json;wrap=false"` is a struct's only field with nothing around it.
    """
    from potok.records.formats.guarded import GuardedFormat

    return GuardedFormat(unguarded(name))


def unguarded(name: str) -> Format:
    """The format itself, which may raise what nobody thought of."""
    plain, _, options = name.partition(";")
    wanted = canonical_name(plain)
    if wanted not in _FORMATS:
        raise SchemaError(f'there is no format "{plain}"', hint=f"use one of {', '.join(_FORMATS)}")
    module, attribute = _FORMATS[wanted]
    found = getattr(import_module(f"potok.records.formats.{module}"), attribute)
    if options:
        from potok.records.formats.options import with_options

        return with_options(found, wanted, options)
    return cast(Format, found() if isinstance(found, type) else found)
