"""Protobuf schemas of a registry as message types."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from potok.records.formats.registered.proto_parser import ParsedFile, parse_proto
from potok.records.formats.registered.proto_tokens import ProtoSyntaxError
from potok.records.schema_registry.client import PROTOBUF, Registered, RegistryClient
from potok.records.schema_registry.errors import UnknownSchema

ROOT = "schema.proto"
_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")

_SHIPPED = {
    "google/type/date.proto": """
        syntax = "proto3"; package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }""",
    "google/type/timeofday.proto": """
        syntax = "proto3"; package google.type;
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }""",
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/meta.proto": """syntax = "proto3"; package confluent; message Meta { string doc = 1; }""",
}
"""Imports that Confluent's serializers know without a reference."""

_DEEPEST = 50


@dataclass(slots=True)
class ProtoSchema:
    """The message types of a schema."""

    id: int | str
    pool: Any
    file: Any
    parameters: dict[tuple[str, str], dict[str, str]]
    _classes: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def message(self, path: tuple[int, ...]) -> Any:
        """Return the class of the message at a path: the position in the file, then among the nested types."""
        found = self._classes.get(path)
        if found is None:
            found = self._classes[path] = message_factory.GetMessageClass(self._descriptor(path))
        return found

    def path_of(self, full_name: str) -> tuple[int, ...]:
        """Return the path to a message by its name, with or without the package; the first one without a name."""
        if not full_name:
            return (0,)
        try:
            found = self.pool.FindMessageTypeByName(full_name)
        except KeyError:
            package = self.pool.FindFileByName(ROOT).package
            try:
                found = self.pool.FindMessageTypeByName(f"{package}.{full_name}" if package else full_name)
            except KeyError as error:
                raise UnknownSchema(f"schema {self.id} of the registry has no message {full_name}") from error
        path: list[int] = []
        while found.containing_type is not None:
            names = [nested.name for nested in _real(found.containing_type)]
            path.append(names.index(found.name))
            found = found.containing_type
        path.append([message.name for message in self.file.message_type].index(found.name))
        return tuple(reversed(path))

    def _descriptor(self, path: tuple[int, ...]) -> Any:
        messages = self.file.message_type
        if path[0] >= len(messages):
            raise UnknownSchema(f"schema {self.id} of the registry has no message at {list(path)}")
        package = f"{self.file.package}." if self.file.package else ""
        found = self.pool.FindMessageTypeByName(package + messages[path[0]].name)
        for index in path[1:]:
            nested = _real(found)
            if index >= len(nested):
                raise UnknownSchema(f"schema {self.id} of the registry has no message at {list(path)}")
            found = nested[index]
        return found


def _real(descriptor: Any) -> list[Any]:
    """Return the nested types in their order, as a path counts them: entries of maps are types too, but not written."""
    return [nested for nested in descriptor.nested_types if not nested.GetOptions().map_entry]


def proto_of(client: RegistryClient, schema: Registered) -> ProtoSchema:
    """Return the message types of a schema. Raises `UnknownSchema` if it is not one of Protobuf that can be read."""
    return _loaded(schema, tuple(client.referenced(schema)))


@lru_cache(maxsize=512)
def _loaded(schema: Registered, others: tuple[tuple[str, Registered], ...]) -> ProtoSchema:
    if schema.kind != PROTOBUF:
        raise UnknownSchema(f"schema {schema.shown} of the registry is one of {schema.kind}, not of Protobuf")
    try:
        pool = descriptor_pool.DescriptorPool()
        known = {name: _parsed(other.text, name).file for name, other in others}
        main = _parsed(schema.text, ROOT)
        _add(pool, main.file, known, set(), 0)
        descriptor = pool.FindFileByName(ROOT)
        copy = descriptor_pb2.FileDescriptorProto()
        descriptor.CopyToProto(copy)
    except UnknownSchema:
        raise
    except (ProtoSyntaxError, TypeError, KeyError, ValueError, RecursionError, DecodeError) as error:
        raise UnknownSchema(f"schema {schema.shown} of the registry is not valid Protobuf: {error}") from error
    if not copy.message_type:
        raise UnknownSchema(f"schema {schema.shown} of the registry has no message")
    return ProtoSchema(schema.shown, pool, copy, main.parameters)


def _parsed(text: str, name: str) -> ParsedFile:
    """Parse a schema: text, or a descriptor in base64, which Confluent's serializer for Python registers."""
    stripped = text.strip()
    if stripped and " " not in stripped and "{" not in stripped:
        try:
            file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(stripped, validate=True))
        except (binascii.Error, DecodeError) as error:
            raise ProtoSyntaxError(f"it is neither text nor a descriptor: {error}") from error
        file.name = name
        return ParsedFile(file)
    return parse_proto(text, name)


def _add(pool: Any, file: Any, known: dict[str, Any], added: set[str], depth: int) -> None:
    """Add a file behind those that it imports."""
    if file.name in added:
        return
    if depth > _DEEPEST:
        raise ProtoSyntaxError(f"imports are nested more than {_DEEPEST} deep")
    added.add(file.name)
    for name in file.dependency:
        _add(pool, _imported(name, known), known, added, depth + 1)
    pool.Add(file)


def _imported(name: str, known: dict[str, Any]) -> Any:
    if name in known:
        return known[name]
    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem in _WELL_KNOWN and name.startswith("google/protobuf/"):
        file = descriptor_pb2.FileDescriptorProto()
        import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR.CopyToProto(file)
        return file
    if name in _SHIPPED:
        return parse_proto(_SHIPPED[name], name).file
    raise ProtoSyntaxError(f'it imports "{name}", to which it has no reference')
