"""Find rows and files of an Iceberg table: those of some keys, and those that one snapshot added."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

# Their types do not say that they accept the name of a column.
_AT_LEAST: Any = GreaterThanOrEqual
_AT_MOST: Any = LessThanOrEqual
_ONE_OF: Any = In


def where_keys(rows: pa.Table, keys: list[str]) -> BooleanExpression:
    """Return a condition that all rows of these keys satisfy; with several key columns, others may satisfy it too.

    The exact condition for several columns is a tree with a leaf for every value, which the library evaluates slowly:
    5,000 keys of two columns take 42 s.
    """
    parts: list[BooleanExpression] = []
    for name in keys:
        values = pc.unique(rows.column(name))
        bounds = pc.min_max(values)
        # The library compares sets of more than 200 values with no file statistics, but bounds always.
        parts.append(_AT_LEAST(name, bounds["min"].as_py()))
        parts.append(_AT_MOST(name, bounds["max"].as_py()))
        parts.append(_ONE_OF(name, values.to_pylist()))
    return reduce(And, parts)


def over_deleted(table: Table, rows: pa.Table, keys: list[str], where: BooleanExpression) -> pa.Table:
    """Return the rows of a table that satisfy a condition of `where_keys` but have none of the keys."""
    if len(keys) == 1:
        return pa.table({})
    found = table.scan(row_filter=where).to_arrow()
    wanted = rows.select(keys).cast(pa.schema([found.schema.field(name).remove_metadata() for name in keys]))
    numbered = found.select(keys).append_column("n", pa.array(range(len(found)), pa.int64()))
    return found.take(numbered.join(wanted, keys, join_type="left anti").column("n"))


def added_files(table: Table, snapshot: int) -> tuple[list[DataFile], int]:
    """Return the files in the table that a snapshot added, and how many rows they have."""
    current = table.current_snapshot()
    manifests = [] if current is None else current.manifests(table.io)
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    files = [entry.data_file for entry in entries if entry.snapshot_id == snapshot]
    return files, sum(file.record_count for file in files)
