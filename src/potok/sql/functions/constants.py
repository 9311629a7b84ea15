"""Constant arguments, which Arrow kernels take as options, once per column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def constant(column: pa.Array) -> Any:
    """Return the value of all rows, or None if the rows differ, one is NULL, or there are none."""
    if len(column) == 0 or column.null_count:
        return None
    first = column[0]
    if len(column) > 1 and (column[-1] != first or not pc.all(pc.equal(column, first)).as_py()):
        return None
    return first.as_py()


def is_ascii(column: pa.Array) -> bool:
    """Return whether a string column is ASCII, so that bytes and characters count the same."""
    return pc.all(pc.string_is_ascii(column)).as_py() is not False
