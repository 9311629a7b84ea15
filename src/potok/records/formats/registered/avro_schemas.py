"""Avro schemas of a registry, checked and complete: with what they refer to, and names in full."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import fastavro
import orjson

from potok.records.schema_registry.client import AVRO, Registered, RegistryClient
from potok.records.schema_registry.errors import UnknownSchema

_DEEPEST = 100
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LEFT_AS_THEY_ARE = ("uuid", "duration")
"""Logical types that fastavro reads as objects which are no columns."""
_RECORDS = ("record", "error")
_NAMED = (*_RECORDS, "enum", "fixed")


def avro_of(client: RegistryClient, schema: Registered) -> Any:
    """Return a schema as JSON that needs no other. Raises `UnknownSchema` if it is not one of Avro that can be read."""
    return _complete(schema, tuple(inner for _, inner in client.referenced(schema)))


@lru_cache(maxsize=1024)
def _complete(schema: Registered, others: tuple[Registered, ...]) -> Any:
    if schema.kind != AVRO:
        raise UnknownSchema(f"schema {schema.shown} of the registry is one of {schema.kind}, not of Avro")
    try:
        completion = _Completion()
        for other in others:
            completion.define(orjson.loads(other.text), "")
        found = completion.complete(orjson.loads(schema.text), "", ())
        fastavro.parse_schema(found)
    except UnknownSchema as error:
        raise UnknownSchema(f"schema {schema.shown}: {error}") from error
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UnknownSchema(f"schema {schema.shown} of the registry is not valid Avro: {error}") from error
    return found


class _Completion:
    """Replaces the first reference to each named type by its definition.

    Schemas that contain themselves are refused: a few bytes may then be nested so deep that the reader crashes. So are
    lists of values that take no bytes: a few bytes may then stand for more than fits into memory.
    """

    def __init__(self) -> None:
        self._definitions: dict[str, tuple[Any, str]] = {}
        self._done: set[str] = set()

    def define(self, schema: Any, namespace: str) -> None:
        """Take note of all named types in a schema."""
        if isinstance(schema, list):
            for branch in schema:
                self.define(branch, namespace)
        if not isinstance(schema, dict):
            return
        if schema.get("type") in _NAMED:
            name = _full_name(schema, namespace)
            self._definitions[name] = schema, namespace
            namespace = name.rpartition(".")[0]
        for field in schema.get("fields") or ():
            self.define(field["type"], namespace)
        for part in ("type", "items", "values"):
            if isinstance(schema.get(part), dict | list):
                self.define(schema[part], namespace)

    def complete(self, schema: Any, namespace: str, around: tuple[str, ...]) -> Any:
        if len(around) > _DEEPEST:
            raise UnknownSchema(f"a schema of the registry is nested more than {_DEEPEST} deep")
        if isinstance(schema, list):
            return [self.complete(branch, namespace, (*around, "")) for branch in schema]
        if isinstance(schema, str):
            return self._referred(schema, namespace, around)
        kind = schema["type"]
        if kind in _NAMED:
            return self._named(schema, namespace, around)
        inner = (*around, "")
        if kind == "array":
            items = self.complete(schema["items"], namespace, inner)
            if not _takes_bytes(items):
                raise UnknownSchema("an array of the registry has items that take no bytes")
            return {**schema, "items": items}
        if kind == "map":
            return {**schema, "values": self.complete(schema["values"], namespace, inner)}
        if isinstance(kind, str) and kind in _PRIMITIVES:
            if schema.get("logicalType") in _LEFT_AS_THEY_ARE:
                return {name: part for name, part in schema.items() if name != "logicalType"}
            return schema
        found = self.complete(kind, namespace, inner)
        return found if schema.keys() == {"type"} else {**schema, "type": found}

    def _referred(self, name: str, namespace: str, around: tuple[str, ...]) -> Any:
        if name in _PRIMITIVES:
            return name
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._definitions and full not in self._done and full not in around:
            full = name
        if full in around:
            raise UnknownSchema(f'schema "{full}" of the registry contains itself')
        if full in self._done:
            return full
        if full not in self._definitions:
            raise UnknownSchema(f'the registry has no definition of "{name}"')
        definition, within = self._definitions[full]
        return self._named(definition, within, around)

    def _named(self, schema: Any, namespace: str, around: tuple[str, ...]) -> Any:
        full = _full_name(schema, namespace)
        if full in around:
            raise UnknownSchema(f'schema "{full}" of the registry contains itself')
        found = {key: value for key, value in schema.items() if key != "namespace"} | {"name": full}
        if schema["type"] in _RECORDS:
            inner, within = full.rpartition(".")[0], (*around, full)
            found["fields"] = [
                {**field, "type": self.complete(field["type"], inner, within)} for field in schema["fields"]
            ]
        self._done.add(full)
        return found


def _full_name(schema: Any, namespace: str) -> str:
    name, own = str(schema["name"]), schema.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def _takes_bytes(schema: Any) -> bool:
    """Whether each value of a schema takes at least one byte."""
    if not isinstance(schema, dict):
        return bool(schema != "null")
    kind = schema["type"]
    if kind in _RECORDS:
        return any(_takes_bytes(field["type"]) for field in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"])
    return _takes_bytes(kind) if isinstance(kind, dict | list) else bool(kind != "null")
