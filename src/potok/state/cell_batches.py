"""Cells as Arrow record batches: rows of (table, key, cell), one table per batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

SCHEMA = pa.schema([("table", pa.dictionary(pa.int32(), pa.string())), ("key", pa.binary()), ("cell", pa.binary())])

OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=True)
PLAIN = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)

CellRows = Sequence[tuple[bytes, bytes | None]]


def cell_batch(tables: Sequence[str], number: int, rows: CellRows) -> pa.RecordBatch:
    """Encode rows of the table with this number."""
    names = pa.DictionaryArray.from_arrays(pa.array([number] * len(rows), pa.int32()), pa.array(tables, pa.string()))
    keys, cells = ([row[part] for row in rows] for part in (0, 1))
    return pa.record_batch([names, pa.array(keys, pa.binary()), pa.array(cells, pa.binary())], schema=SCHEMA)


def cell_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, list[tuple[bytes, bytes | None]]]]:
    """Decode batches into the table of each and its rows."""
    for batch in batches:
        if batch.num_rows:
            table = batch.column("table")[0].as_py()
            yield table, list(zip(batch.column("key").to_pylist(), batch.column("cell").to_pylist(), strict=True))
