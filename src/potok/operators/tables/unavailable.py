"""Fill the fields that a change event leaves out, because the change did not touch them, from the row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.log.broker import HEADERS
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk
from potok.topology.nodes.sources import UNAVAILABLE

ReadRows = Callable[[Sequence[bytes]], list[Any]]
"""Returns the stored rows of some keys."""


def marked_rows(chunk: Chunk) -> dict[int, list[str]]:
    """Return the fields that are not available, by row."""
    if chunk.headers is None:
        return {}
    names, values = pc.list_flatten(chunk.headers).flatten()
    found = pc.fill_null(pc.equal(names, UNAVAILABLE), False)
    if not pc.any(found).as_py():
        return {}
    rows = pc.list_parent_indices(chunk.headers).filter(found).to_pylist()
    return {row: orjson.loads(value) for row, value in zip(rows, values.filter(found).to_pylist(), strict=True)}


def filled(chunk: Chunk, marks: Mapping[int, list[str]], stored: ReadRows) -> Chunk:
    """Return the chunk with these fields as they were before, in an earlier record of the chunk or in the table."""
    assert isinstance(chunk.key, pa.Array)
    keys = chunk.key.to_pylist()
    wanted = list(dict.fromkeys(keys[row] for row in marks))
    current = dict(zip(wanted, stored(wanted), strict=True))
    touched = [row for row, key in enumerate(keys) if key in current]
    values = [plain(value) for value in python_rows(chunk.take(np.array(touched, np.intp)).value)]
    for number, row in enumerate(touched):
        before, value = current[keys[row]], values[number]
        if row in marks and value is not None and before is not None:
            values[number] = value = {**value, **{name: before.get(name) for name in marks[row] if name in before}}
        current[keys[row]] = value
    if isinstance(chunk.value, list):
        column: Any = list(chunk.value)
        for row, value in zip(touched, values, strict=True):
            column[row] = value
    else:
        indexes = np.arange(len(chunk))
        indexes[touched] = len(chunk) + np.arange(len(touched))
        column = pa.concat_arrays([chunk.value, pa.array(values, chunk.value.type)]).take(pa.array(indexes))
    return replace(chunk, value=column, headers=_without_marks(chunk.headers, marks))


def _without_marks(headers: pa.Array | None, marks: Mapping[int, list[str]]) -> pa.Array | None:
    if headers is None:
        return None
    found = headers.to_pylist()
    for row in marks:
        found[row] = [header for header in found[row] if header["name"] != UNAVAILABLE] or None
    return pa.array(found, HEADERS)
