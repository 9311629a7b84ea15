"""Read Debezium's events in Avro of a schema registry: as JSON of Kafka Connect, which the rest of the reader knows."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.extras import need_extra
from potok.records.schema_registry.client import RegistryClient, client_of
from potok.records.schema_registry.connection import connection_at
from potok.records.schema_registry.errors import UnknownSchema
from potok.records.schema_registry.wire import SchemaId, frames_of

_MAGIC = b"\0"


def as_json(values: pa.Array, registry: str) -> tuple[pa.Array, dict[int, str]]:
    """Return values in Avro as JSON of Kafka Connect, and what is wrong with the others. JSON stays as it is."""
    if not registry:
        return values, {}
    marked = pc.fill_null(pc.starts_with(values, _MAGIC), False)
    if not pc.any(marked).as_py():
        return values, {}
    need_extra("Avro of a schema registry", "avro")
    client = client_of(connection_at(registry))
    rows = np.flatnonzero(marked.to_numpy(zero_copy_only=False))
    frames = frames_of(values.filter(marked))
    errors = {int(rows[row]): reason for row, reason in frames.errors.items()}
    found = values.to_pylist()
    for row in errors:
        found[row] = None
    for schema_id, inside in frames.rows_of.items():
        texts, reasons = _texts(client, schema_id, frames.bodies.take(pa.array(inside)).to_pylist())
        for position, row in enumerate(rows[inside].tolist()):
            found[row] = texts[position]
            if position in reasons:
                errors[row] = reasons[position]
    return pa.array(found, pa.binary()), dict(sorted(errors.items()))


def _texts(
    client: RegistryClient, schema_id: SchemaId, bodies: list[bytes]
) -> tuple[list[bytes | None], dict[int, str]]:
    from potok.records.formats.avro_format import without_logical_types
    from potok.records.formats.registered.avro import read_avro
    from potok.records.formats.registered.avro_schemas import avro_of

    try:
        schema = client.schema(schema_id) if isinstance(schema_id, int) else client.schema_by_guid(schema_id)
        avro = without_logical_types(avro_of(client, schema))
    except UnknownSchema as error:
        return [None] * len(bodies), dict.fromkeys(range(len(bodies)), str(error))
    objects, errors = read_avro(avro, schema.shown, bodies)
    texts: list[bytes | None] = []
    for row, value in enumerate(objects):
        try:
            texts.append(None if row in errors else orjson.dumps(value, default=_base64))
        except TypeError as error:
            # Nested deeper than orjson writes, or a number beyond 64 bits.
            texts.append(None)
            errors[row] = f"not valid Avro of schema {schema.shown}: {error}"
    return texts, errors


def _base64(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(type(value).__name__)
    return b64encode(value).decode()
