"""Protobuf with a schema registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from potok.errors import SchemaError
from potok.records.conversion.convert import MisfitError
from potok.records.conversion.fit import fit
from potok.records.formats.format import Decoded, Encoded
from potok.records.formats.protobuf_format import ProtobufFormat
from potok.records.formats.protobuf_schema import NULLS
from potok.records.formats.registered.proto_schemas import ProtoSchema, proto_of
from potok.records.formats.registered.proto_text import proto_text
from potok.records.formats.registered.proto_types import columns_of_message, message_reader
from potok.records.formats.registered.proto_writer import message_filler
from potok.records.formats.registered.registered_format import RegisteredFormat, settled
from potok.records.rows import column_of, rows_of
from potok.records.schema_registry.client import PROTOBUF, Registered
from potok.records.schema_registry.errors import UnknownSchema
from potok.records.schema_registry.wire import by_path, framed, path_bytes, prefixed
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Field, Schema

DEFAULT_NAME = "Record"
_SCALAR = "VALUE"
"""The field of a message for a type that is not a struct."""


@dataclass(frozen=True, slots=True)
class RegisteredProtobufFormat(RegisteredFormat):
    """Messages, read with the types of the schema that they name, by the names of their fields.

    `nulls` is the option of `ProtobufFormat`, for schemas that are registered. `full_name` is the message, of a schema
    that has several.
    """

    name: str = "protobuf_sr"
    nulls: str = "optional"

    def __post_init__(self) -> None:
        RegisteredFormat.__post_init__(self)
        if self.nulls not in NULLS:
            hint = f"write one of {', '.join(NULLS)}"
            raise SchemaError(f'format "protobuf_sr" cannot have nulls={self.nulls}', hint=hint)

    def decode_group(
        self, written: Registered, bodies: pa.Array, schema: Schema | None, columns: Sequence[str] | None
    ) -> Decoded:
        proto = proto_of(self.client, written)
        target = None if schema is None else _as_struct(schema).select(columns if schema.kind == "struct" else None)
        read = _Messages(proto, target, self.folds)
        objects: list[Any] = []
        errors: dict[int, str] = {}
        for row, path, body in by_path(bodies.to_pylist()):
            try:
                if path is None:
                    raise MisfitError("the path to the type of the message is not complete")
                objects.append(read(path, body))
            except (DecodeError, MisfitError, UnknownSchema) as error:
                objects.append(None)
                decoded = isinstance(error, DecodeError)
                errors[row] = f"not valid Protobuf of schema {written.shown}" + ("" if decoded else f": {error}")
        if schema is None or target is None:
            return Decoded(objects, errors)
        fitted = fit(objects, target, self.rules)
        column = fitted.column if schema.kind == "struct" else fitted.column.field(0)
        return settled(column, fitted.errors, errors)

    def infer(self, written: Registered, *, sql: bool) -> Schema | None:
        proto = proto_of(self.client, written)
        path = proto.path_of(self.full_name) if self.id and self.full_name else self._first(proto)
        unwraps = not sql or self.nulls == "wrapper"
        return columns_of_message(proto, proto.message(path).DESCRIPTOR, sql=sql, unwraps=unwraps)

    def _first(self, proto: ProtoSchema) -> tuple[int, ...]:
        """Return the message that `full_name` names, if the schema has it: the name may be for schemas to come."""
        try:
            return proto.path_of(self.full_name)
        except UnknownSchema:
            return (0,)

    def encode_column(self, column: pa.Array, schema: Schema) -> Encoded:
        given = self.writer_schema()
        if given is None:
            encoded = ProtobufFormat(self.nulls).encode(column, schema)
            prefix = framed(self._registered(schema).id, path_bytes((0,)))
            return Encoded(prefixed(prefix, encoded.values), encoded.errors)
        return self._encode_as(given, column, schema)

    def _encode_as(self, given: Registered, column: pa.Array, schema: Schema) -> Encoded:
        message, fill, path = self._writer(given, schema)
        errors: dict[int, str] = {}
        bodies: list[bytes | None] = []
        for row, obj in enumerate(rows_of(column)):
            try:
                made = message()
                if obj is not None:
                    fill(made, obj if schema.kind == "struct" else {_SCALAR: obj})
                bodies.append(None if obj is None else made.SerializeToString(deterministic=True))
            except (MisfitError, TypeError, ValueError) as error:
                bodies.append(None)
                errors[row] = f"does not fit schema {given.id}: {error}"
        return Encoded(prefixed(framed(given.id, path_bytes(path)), pa.array(bodies, pa.binary())), errors)

    def encode_dynamic(self, column: list[Any]) -> Encoded:
        given = self.writer_schema()
        inferred = None if given is None else self.infer(given, sql=False)
        if given is None or inferred is None:
            self.needed(None)
        assert given is not None
        assert inferred is not None
        fitted = column_of(column, inferred)
        encoded = self._encode_as(given, fitted.column, inferred)
        return Encoded(encoded.values, {**encoded.errors, **fitted.errors})

    def announce(self, schema: Schema) -> None:
        given = self.writer_schema()
        if given is None:
            self._registered(schema)
        else:
            self._writer(given, schema)

    def _writer(self, given: Registered, schema: Schema) -> tuple[Any, Callable[[Any, Any], None], tuple[int, ...]]:
        proto = proto_of(self.client, given)
        path = self._first(proto)
        return proto.message(path), _filler(proto, path, schema, self.folds), path

    def _registered(self, schema: Schema) -> Registered:
        return self.registered(PROTOBUF, _text_of(_as_struct(schema).arrow, self.full_name or DEFAULT_NAME, self.nulls))


def _filler(proto: ProtoSchema, path: tuple[int, ...], schema: Schema, fold: bool) -> Callable[[Any, Any], None]:
    return message_filler(proto.message(path).DESCRIPTOR, _as_struct(schema), proto.id, fold=fold)


def _as_struct(schema: Schema) -> Schema:
    return schema if schema.kind == "struct" else Schema.struct([Field(_SCALAR, schema)])


@lru_cache(maxsize=256)
def _text_of(arrow: pa.DataType, full_name: str, nulls: str) -> str:
    schema = declared_schema(arrow)
    assert schema is not None
    return proto_text(schema, full_name, nulls)


class _Messages:
    """Reads messages of the types of one schema."""

    def __init__(self, proto: ProtoSchema, target: Schema | None, fold: bool) -> None:
        self._proto, self._target, self._fold = proto, target, fold
        self._readers: dict[tuple[int, ...], tuple[Callable[[bytes], Any], Callable[[Any], Any]]] = {}

    def __call__(self, path: tuple[int, ...], body: bytes) -> Any:
        found = self._readers.get(path)
        if found is None:
            message = self._proto.message(path)
            read = message_reader(message.DESCRIPTOR, self._target, fold=self._fold)
            found = self._readers[path] = message.FromString, read
        return found[1](found[0](body))
