"""File formats: Parquet, or one JSON document per line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from potok.sinks.sink_spec import Rows

COMPRESSIONS = {"parquet": ("zstd", "snappy", "gzip", "none"), "json": ("none", "gzip", "zstd")}
"""The compressions of each format; the first is the default."""

_JSON_ENDINGS = {"none": ".json", "gzip": ".json.gz", "zstd": ".json.zst"}

INSTANT = pa.timestamp("ms", "UTC")


def ending_of(format_name: str, compression: str) -> str:
    return _JSON_ENDINGS[compression] if format_name == "json" else ".parquet"


def write_json(path: Path, bodies: pa.Array, compression: str) -> None:
    with pa.output_stream(str(path), compression=None if compression == "none" else compression) as file:
        for start in range(0, len(bodies), 65_536):
            lines = bodies.slice(start, 65_536).to_pylist()
            file.write(b"\n".join(lines) + b"\n")


def write_parquet(path: Path, rows: Rows, compression: str, *, with_key: bool) -> None:
    import pyarrow.parquet as pq  # slow to import

    pq.write_table(table_of(rows, with_key=with_key), path, compression=compression)


def table_of(rows: Rows, *, with_key: bool) -> pa.Table:
    """Return the fields of the value as columns; with the key, three columns."""
    assert not isinstance(rows.value, list)
    if with_key:
        instants = pa.array(rows.timestamp).cast(INSTANT)
        return pa.table({"key": rows.key, "timestamp": instants, "value": rows.value})
    if pa.types.is_struct(rows.value.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows.value)])
    return pa.table({"value": rows.value})
