"""Records as JSON documents: the value alone, or key, timestamp and value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from potok.records.formats.format import Column, Encoded
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.sinks.sink_spec import NO_VALUE, Failures, Rows


def json_bodies(rows: Rows, *, with_key: bool) -> Encoded:
    """Return one document per record, and the errors of those that have none."""
    values = json_documents(rows.value)
    if not with_key:
        return Encoded(values.values, {**null_values(values.values), **values.errors})
    keys = json_documents(rows.key)
    texts = pc.binary_join_element_wise(
        b'{"key":',
        keys.values.fill_null(b"null"),
        b',"timestamp":',
        pa.array(rows.timestamp).cast(pa.string()).cast(pa.binary()),
        b',"value":',
        values.values.fill_null(b"null"),
        b"}",
        b"",
    )
    return Encoded(texts, {**keys.errors, **values.errors})


def null_values(column: Column) -> Failures:
    """Return the records without a value."""
    if isinstance(column, list):
        return {row: NO_VALUE for row, value in enumerate(column) if value is None}
    if not column.null_count:
        return {}
    return dict.fromkeys(pc.indices_nonzero(column.is_null()).to_pylist(), NO_VALUE)


def json_documents(column: Column) -> Encoded:
    """Return each item as a JSON document, null for null."""
    schema = None if isinstance(column, list) else declared_schema(column.type)
    return format_named("json").encode(column, schema)
