"""Arguments that are the same in every row, as literals are: Arrow kernels take them as options, once for a column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def constant(column: pa.Array) -> Any:
    """The value that stands in every row, or None if the rows differ, if one is NULL, or if there is none."""
    if len(column) == 0 or column.null_count:
        return None
    first = column[0]
    if len(column) > 1 and (column[-1] != first or not pc.all(pc.equal(column, first)).as_py()):
        return None
    return first.as_py()


def is_ascii(column: pa.Array) -> bool:
    """Whether bytes and characters of a text column count the same."""
    return pc.all(pc.string_is_ascii(column)).as_py() is not False
