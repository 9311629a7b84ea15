"""Avro with a schema registry."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import orjson
import pyarrow as pa

from potok.records.conversion.fit import fit
from potok.records.formats.avro_format import avro_schema, codec_of
from potok.records.formats.format import Decoded, Encoded
from potok.records.formats.registered.avro_schemas import avro_of
from potok.records.formats.registered.avro_types import columns_of_avro, shaped
from potok.records.formats.registered.avro_writer import avro_writer, is_avro_misfit
from potok.records.formats.registered.registered_format import RegisteredFormat, settled
from potok.records.rows import rows_of
from potok.records.schema_registry.client import AVRO, Registered
from potok.records.schema_registry.errors import UnknownSchema
from potok.records.schema_registry.wire import framed, prefixed
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_MARK = os.urandom(8)
"""Follows each value where many are read at once. Its bytes cannot be guessed, so a value that is read up to it is
whole."""

_BROKEN = (
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    MemoryError,
    AttributeError,
    struct.error,
)
DEFAULT_NAME = "Record"


@dataclass(frozen=True, slots=True)
class RegisteredAvroFormat(RegisteredFormat):
    """Avro, resolved by its rules from the schema of the writer to that of the reader."""

    name: str = "avro_sr"

    def decode_group(
        self, written: Registered, bodies: pa.Array, schema: Schema | None, columns: Sequence[str] | None
    ) -> Decoded:
        client, pinned = self.client, self.pinned()
        reads = None if pinned is None or pinned.text == written.text else orjson.dumps(avro_of(client, pinned))
        writes = orjson.dumps(avro_of(client, written))
        reader = _reader(written.shown, writes, reads, None if schema is None else schema.arrow, self.folds)
        objects, errors = reader.read(bodies.to_pylist())
        if schema is None:
            return Decoded(objects, errors)
        fitted = fit(objects, schema.select(columns), self.rules)
        return settled(fitted.column, fitted.errors, errors)

    def infer(self, written: Registered, *, sql: bool) -> Schema | None:
        return columns_of_avro(avro_of(self.client, written), sql=sql)

    def encode_column(self, column: pa.Array, schema: Schema) -> Encoded:
        given = self.writer_schema()
        if given is None:
            return self._encode_own(column, schema)
        write = avro_writer(orjson.dumps(avro_of(self.client, given)), given.id, schema.arrow, self.folds)
        return _encoded(rows_of(column), write, given.id)

    def _encode_own(self, column: pa.Array, schema: Schema) -> Encoded:
        codec = codec_of(schema.arrow)
        given = self._registered(schema)
        bodies = [None if row is None else codec.write(row) for row in rows_of(column)]
        return Encoded(prefixed(framed(given.id), pa.array(bodies, pa.binary())))

    def encode_dynamic(self, column: list[Any]) -> Encoded:
        given = self.writer_schema()
        if given is None:
            self.needed(None)
        assert given is not None
        return _encoded(column, avro_writer(orjson.dumps(avro_of(self.client, given)), given.id, None, False), given.id)

    def announce(self, schema: Schema) -> None:
        given = self.writer_schema()
        if given is None:
            self._registered(schema)
        else:
            avro_writer(orjson.dumps(avro_of(self.client, given)), given.id, schema.arrow, self.folds)

    def _registered(self, schema: Schema) -> Registered:
        return self.registered(AVRO, _text_of(schema.arrow, self.full_name or DEFAULT_NAME))


@lru_cache(maxsize=256)
def _text_of(arrow: pa.DataType, full_name: str) -> str:
    schema = declared_schema(arrow)
    assert schema is not None
    return orjson.dumps(avro_schema(schema, full_name)).decode()


def _encoded(rows: list[Any], write: Any, schema_id: int) -> Encoded:
    errors: dict[int, str] = {}
    bodies: list[bytes | None] = []
    for row, obj in enumerate(rows):
        try:
            bodies.append(None if obj is None else write(obj))
        except Exception as error:
            if not is_avro_misfit(error):
                raise
            bodies.append(None)
            errors[row] = f"does not fit schema {schema_id}: {error}"
    return Encoded(prefixed(framed(schema_id), pa.array(bodies, pa.binary())), errors)


def read_avro(avro: Any, schema_id: int | str, bodies: list[bytes]) -> tuple[list[Any], dict[int, str]]:
    """Return the values of a complete schema as objects, and the reasons why others are none."""
    return _reader(schema_id, orjson.dumps(avro), None, None, False).read(bodies)


class _Reader:
    """Reads values of one schema, many at once."""

    def __init__(self, schema_id: int | str, writes: Any, reads: Any) -> None:
        self._id = schema_id
        self._writes, self._reads = _marked(writes), None if reads is None else _marked(reads)
        self._writes_one = fastavro.parse_schema(writes)
        self._reads_one = None if reads is None else fastavro.parse_schema(reads)

    def read(self, bodies: list[bytes]) -> tuple[list[Any], dict[int, str]]:
        """Return an object for each value, and the reasons why others are none."""
        try:
            return self._all(bodies), {}
        except (*_BROKEN, fastavro.read.SchemaResolutionError):
            objects: list[Any] = []
        errors: dict[int, str] = {}
        for row, body in enumerate(bodies):
            try:
                objects.append(self._one(body))
            except fastavro.read.SchemaResolutionError as error:
                raise UnknownSchema(
                    f"schema {self._id} cannot be read with the schema of the reader: {error}"
                ) from error
            except _BROKEN as error:
                objects.append(None)
                cut_off = isinstance(error, EOFError) or not str(error)
                errors[row] = f"not valid Avro of schema {self._id}: {'the value is cut off' if cut_off else error}"
        return objects, errors

    def _one(self, body: bytes) -> Any:
        """Read one value without a mark, so that the reason of an error depends on its bytes alone."""
        stream = io.BytesIO(body)
        found: Any = fastavro.schemaless_reader(stream, self._writes_one, self._reads_one)
        if stream.tell() != len(body):
            raise ValueError(f"{len(body) - stream.tell()} bytes are left over")
        return found

    def _all(self, bodies: list[bytes]) -> list[Any]:
        """Read values as one array of Avro, in which each is followed by a mark."""
        data = b"".join((_zigzag(len(bodies)), _MARK.join(bodies), _MARK, b"\0"))
        found: Any = fastavro.schemaless_reader(io.BytesIO(data), self._writes, self._reads)
        objects = [one["v"] for one in found if one["m"] == _MARK]
        if len(objects) != len(bodies):
            raise ValueError("its bytes are not those of the schema")
        return objects


def _zigzag(count: int) -> bytes:
    rest, out = count << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _marked(avro: Any) -> Any:
    mark = {"type": "fixed", "name": "potok.Mark", "size": len(_MARK)}
    fields = [{"name": "v", "type": avro}, {"name": "m", "type": mark}]
    return fastavro.parse_schema(
        {"type": "array", "items": {"type": "record", "name": "potok.Marked", "fields": fields}}
    )


@lru_cache(maxsize=512)
def _reader(schema_id: int | str, writes: bytes, reads: bytes | None, arrow: pa.DataType | None, fold: bool) -> _Reader:
    writer, reader = orjson.loads(writes), None if reads is None else orjson.loads(reads)
    if arrow is not None:
        target = declared_schema(arrow)
        assert target is not None
        writer = shaped(writer, target, fold=fold)
        reader = None if reader is None else shaped(reader, target, fold=fold)
    return _Reader(schema_id, writer, reader)
