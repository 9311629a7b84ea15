"""Read Debezium's change events as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.log.broker import HEADERS
from potok.operators.core.call import Errors
from potok.operators.core.chunk import Column
from potok.records.formats.debezium.debezium_format import DebeziumFormat
from potok.records.formats.registry import unguarded
from potok.topology.nodes import TableSource
from potok.topology.nodes.retention import FOREVER
from potok.topology.nodes.sources import TRUNCATED, UNAVAILABLE

_NAME = "debezium"


def is_changes(node: object) -> bool:
    """Whether a source is a table of change events."""
    return isinstance(node, TableSource) and node.value.format.partition(";")[0] == _NAME


def without_truncates(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out the truncates whose rows are deleted by the records behind them."""
    headers = batch.column("headers")
    if headers.null_count == len(batch):
        return batch
    names, _ = pc.list_flatten(headers).flatten()
    found = pc.list_parent_indices(headers).filter(pc.fill_null(pc.equal(names, TRUNCATED), False))
    if not len(found):
        return batch
    keep = np.ones(len(batch), np.bool_)
    keep[found.to_numpy()] = False
    return batch.filter(pa.array(keep))


def read_changes(
    batch: pa.RecordBatch, node: TableSource, columns: list[str] | None
) -> tuple[Column, Errors, pa.Array]:
    """Return the rows, the errors, and the headers: with a mark where the table has to fill fields."""
    format_ = unguarded(node.value.format)
    assert isinstance(format_, DebeziumFormat)
    rows = format_.rows(batch.column("value"), node.value.schema, columns)
    errors = dict(rows.errors)
    errors |= dict.fromkeys(rows.truncates, "the table was truncated: read it again from its database")
    headers = batch.column("headers")
    if not rows.unavailable:
        return rows.column, errors, headers
    if node.lifetime != FOREVER:
        reason = (
            "the change omits fields, and a table with a time to live cannot supply them: set REPLICA IDENTITY FULL"
        )
        errors |= dict.fromkeys(rows.unavailable, reason)
        return rows.column, errors, headers
    return rows.column, errors, _marked(headers, rows.unavailable)


def _marked(headers: pa.Array, unavailable: Mapping[int, list[str]]) -> pa.Array:
    found = headers.to_pylist()
    for row, names in unavailable.items():
        found[row] = [*(found[row] or ()), {"name": UNAVAILABLE, "value": orjson.dumps(names)}]
    return pa.array(found, HEADERS)
