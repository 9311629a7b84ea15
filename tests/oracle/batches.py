"""Functions of columns: what each makes of a frame with one record."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.topology.nodes import MapBatches
from tests.oracle.call import UserError, attempt
from tests.oracle.records import Item


def one_row(node: MapBatches, item: Item) -> list[Item]:
    """What a function makes of one record, as one row or, with numbered rows, as several."""
    if item.value is None:
        return [item]
    fields = item.value if isinstance(item.value, dict) else {"value": item.value}
    columns = {**({"key": [item.key]} if node.with_key else {}), **{name: [field] for name, field in fields.items()}}
    if node.row_column:
        columns[node.row_column] = [0]
    table = pa.table(columns)
    frame = {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: _polars(table)}[node.format]()
    model = () if node.setup is None else (node.setup.callable(),)
    rows = _rows(attempt(node.function.callable, frame, *model))
    if not node.row_column:
        if len(rows) != 1:
            raise UserError(f"{len(rows)} rows for one")
        return [item.with_value(rows[0])]
    for row in rows:
        if row.pop(node.row_column) != 0:
            raise UserError("a number that was not given")
    return [item.part(item.key, row, index) for index, row in enumerate(rows)]


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _rows(result: Any) -> list[Any]:
    """The rows of a result, in the ways in which the tests return them."""
    if isinstance(result, dict):
        return _rows(pa.table({name: pa.array(column) for name, column in result.items()}))
    if isinstance(result, pa.Table | pa.Array | pa.ChunkedArray):
        return list(result.to_pylist())
    if hasattr(result, "to_dicts"):
        return list(result.to_dicts())
    if hasattr(result, "iloc") and hasattr(result, "columns"):
        # pandas has nothing but NaN for a missing number.
        return _rows(pa.Table.from_pandas(result, preserve_index=False))
    return [item.item() if hasattr(item, "item") else item for item in result]
