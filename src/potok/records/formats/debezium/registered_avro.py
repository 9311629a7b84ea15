"""Read Avro of Confluent's serializers: each value names its schema, which a registry has."""

from __future__ import annotations

import functools
import io
import os
import re
import struct
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import PotokError, SchemaError
from potok.extras import need_extra
from potok.redact import redact_url, split_url

_MAGIC = b"\0"
_HEADER = 5
_TIMEOUT_S = 10.0
_MOST_BYTES = 4 << 20
_HIGHEST_PORT = 65_535
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
    url = _url_of(registry)
    found = values.to_pylist()
    errors: dict[int, str] = {}
    schemas: dict[int, Any] = {}
    for row, is_avro in enumerate(marked.to_pylist()):
        if is_avro:
            try:
                found[row] = _json(found[row], url, schemas)
            except ValueError as error:
                found[row], errors[row] = None, str(error)
    return pa.array(found, pa.binary()), errors


def _url_of(registry: str) -> str:
    """Return the URL that the option names; raise if it is not one. It is not shown: it may contain a password."""
    url = registry
    if registry.startswith(_ENVIRONMENT):
        name = registry.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise SchemaError(
                f"the environment variable {name} is not set", hint=f"export {name}=http://user:password@host:8081"
            )
        url = os.environ[name]
    parts = split_url(url)
    host, _, port = ("", "", "") if parts is None else re.sub(r":(\d*)$", r" \1", parts.hosts).partition(" ")
    right = parts is not None and parts.scheme.lower() in ("http", "https") and host and not parts.options
    if not right or "," in host or int(port or 0) > _HIGHEST_PORT or not re.fullmatch(r"[!-~]*", url):
        raise SchemaError("the option registry is not a URL of HTTP", hint='write "http://host:8081", with % escapes')
    return url


def _json(data: bytes, url: str, schemas: dict[int, Any]) -> bytes:
    import fastavro

    if len(data) < _HEADER:
        raise ValueError("not Avro of a schema registry: the number of the schema is cut off")
    number = int.from_bytes(data[1:_HEADER], "big")
    stream = io.BytesIO(data)
    stream.seek(_HEADER)
    if number not in schemas:
        try:
            schemas[number] = _schema(url, number)
        except UnknownSchema as error:
            # The registry is not asked again for each record of the block.
            schemas[number] = error
    schema = schemas[number]
    if isinstance(schema, UnknownSchema):
        raise UnknownSchema(str(schema))
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
def _schema(url: str, number: int) -> Any:
    """Return a schema of the registry, in which a number always means the same."""
    import fastavro

    from potok.records.formats.avro_format import without_logical_types

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


class _NoRedirects(HTTPRedirectHandler):
    """Does not follow a redirect, which would send the password to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _get(url: str, number: int) -> bytes:
    parts = split_url(url)
    assert parts is not None, "checked"
    request = Request(f"{parts.address.rstrip('/')}/schemas/ids/{number}")
    request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
    if parts.user is not None:
        user = f"{parts.user}:{parts.password or ''}"
        request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    try:
        with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S) as response:
            data: bytes = response.read(_MOST_BYTES + 1)
    except HTTPError as error:
        if error.code == _NOT_FOUND:
            raise UnknownSchema(f"the registry has no schema {number}") from error
        raise RegistryUnreachable(url, f"it answers {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise RegistryUnreachable(url, str(error)) from error
    if len(data) > _MOST_BYTES:
        raise RegistryUnreachable(url, f"its answer is larger than {_MOST_BYTES >> 20} MB")
    return data
