"""Read Avro of Confluent's serializers: each value names its schema, which a registry has."""

from __future__ import annotations

import functools
import io
import os
import struct
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import PotokError, SchemaError
from potok.extras import need_extra
from potok.redact import redact_url

_MAGIC = b"\0"
_HEADER = 5
_TIMEOUT_S = 10.0
_NOT_FOUND = 404
_ENVIRONMENT = "env:"
_DEEPEST = 100
_SHAPES = ("record", "error", "enum", "fixed", "array", "map")


class RegistryUnreachable(PotokError):
    """A schema registry that does not answer."""

    passing = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the schema registry at {redact_url(url)} cannot be reached: {why}",
            hint="check the option registry, and that the registry runs",
        )


class UnknownSchema(ValueError):
    """A number of a schema that the registry does not have."""


def as_json(values: pa.Array, registry: str) -> tuple[pa.Array, dict[int, str]]:
    """Return values in Avro as JSON of Kafka Connect, and what is wrong with the others. JSON stays as it is."""
    if not registry:
        return values, {}
    marked = pc.fill_null(pc.starts_with(values, _MAGIC), False)
    if not pc.any(marked).as_py():
        return values, {}
    need_extra("Avro of a schema registry", "avro")
    found = values.to_pylist()
    errors: dict[int, str] = {}
    for row, is_avro in enumerate(marked.to_pylist()):
        if is_avro:
            try:
                found[row] = _json(found[row], registry)
            except ValueError as error:
                found[row], errors[row] = None, str(error)
    return pa.array(found, pa.binary()), errors


def _json(data: bytes, registry: str) -> bytes:
    import fastavro

    if len(data) < _HEADER:
        raise ValueError("not Avro of a schema registry: the number of the schema is cut off")
    number = int.from_bytes(data[1:_HEADER], "big")
    stream = io.BytesIO(data)
    stream.seek(_HEADER)
    schema = _schema(registry, number)
    try:
        value = fastavro.schemaless_reader(stream, schema, None)
        text = orjson.dumps(value, default=_base64)
    except (EOFError, LookupError, TypeError, ValueError, ArithmeticError, MemoryError, struct.error) as error:
        raise ValueError(f"not valid Avro of schema {number}: {str(error) or 'the value is cut off'}") from error
    if stream.tell() != len(data):
        raise ValueError(f"not valid Avro of schema {number}: {len(data) - stream.tell()} bytes are left over")
    return text


def _base64(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(type(value).__name__)
    return b64encode(value).decode()


@functools.lru_cache(maxsize=1024)
def _schema(registry: str, number: int) -> Any:
    """Return a schema of the registry, in which a number always means the same."""
    import fastavro

    from potok.records.formats.avro_format import without_logical_types

    url = registry
    if registry.startswith(_ENVIRONMENT):
        name = registry.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise SchemaError(
                f"the environment variable {name} is not set", hint=f"export {name}=http://user:password@host:8081"
            )
        url = os.environ[name]
    answer = _get(url, number)
    try:
        found = orjson.loads(answer)
        text, kind, references = found["schema"], found.get("schemaType", "AVRO"), found.get("references")
    except (ValueError, TypeError, KeyError) as error:
        raise RegistryUnreachable(url, "the answer is not one of a schema registry") from error
    if kind != "AVRO" or references:
        raise UnknownSchema(f"schema {number} of the registry is not one of Avro without references")
    named: dict[str, Any] = {}
    try:
        parsed = fastavro.parse_schema(without_logical_types(orjson.loads(text)), named)
        _check_depth(parsed, named, (), set())
    except UnknownSchema:
        raise
    except (fastavro.schema.SchemaParseException, LookupError, TypeError, ValueError, RecursionError) as error:
        raise UnknownSchema(f"schema {number} of the registry is not valid Avro: {error}") from error
    return parsed


def _check_depth(schema: Any, named: Mapping[str, Any], around: tuple[str, ...], checked: set[str]) -> None:
    """Raise for schemas that contain themselves: a few bytes may then be nested so deep that the reader crashes."""
    if len(around) > _DEEPEST:
        raise UnknownSchema(f"a schema of the registry is nested more than {_DEEPEST} deep")
    if isinstance(schema, str):
        if schema in around:
            raise UnknownSchema(f'schema "{schema}" of the registry contains itself')
        if schema in named and schema not in checked:
            _check_depth(named[schema], named, around, checked)
    elif isinstance(schema, list):
        for branch in schema:
            _check_depth(branch, named, (*around, ""), checked)
    elif isinstance(schema, dict):
        within = (*around, schema.get("name", ""))
        for part in (*schema.get("fields", ()), schema):
            for inner in ("type", "items", "values"):
                if inner in part and part[inner] not in _SHAPES:
                    _check_depth(part[inner], named, within, checked)
        checked.add(within[-1])


def _get(url: str, number: int) -> bytes:
    parts = urlsplit(url)
    host = parts.hostname or ""
    plain = parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host).geturl().rstrip("/")
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    try:
        with urlopen(Request(f"{plain}/schemas/ids/{number}", headers=headers), timeout=_TIMEOUT_S) as response:
            data: bytes = response.read()
            return data
    except HTTPError as error:
        if error.code == _NOT_FOUND:
            raise UnknownSchema(f"the registry has no schema {number}") from error
        raise RegistryUnreachable(url, f"it answers {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise RegistryUnreachable(url, str(error)) from error
