"""The ids of schemas that are in headers of records."""

from __future__ import annotations

import pyarrow as pa

from potok.records.formats.format import binary_column
from potok.records.schema_registry.subjects import Side
from potok.records.schema_registry.wire import KEY_HEADER, VALUE_HEADER, with_ids_of_headers


def with_id(batch: pa.RecordBatch, format_name: str, side: Side) -> pa.Array:
    """Return the keys or values of a batch as their format reads them: behind the ids of their schemas."""
    values = batch.column(side)
    if "_sr" not in format_name:
        return values
    header = KEY_HEADER if side == "key" else VALUE_HEADER
    return with_ids_of_headers(binary_column(values), batch.column("headers"), header)
