"""Dates and timestamps that can be stored. SQL computes with any year, but topics and tables are limited to the years 1
to 9999, which is what Python supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]

REASON = "a date outside of the years 1 to 9999 cannot be kept"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def cannot_be_kept(column: pa.Array) -> dict[int, str]:
    """Return the rows that contain such a date, at any depth."""
    if not holds_dates(column.type):
        return {}
    return dict.fromkeys(np.flatnonzero(_far(column)).tolist(), REASON)


def holds_dates(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(holds_dates(type_.field(index).type) for index in range(type_.num_fields))
    return bool(pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def _far(column: Any) -> Mask:
    type_ = column.type
    if pa.types.is_struct(type_):
        far = [_far(part) for part in column.flatten()]
        return np.logical_or.reduce(far) if far else np.zeros(len(column), np.bool_)
    if pa.types.is_map(type_) or pa.types.is_list(type_):
        return _far_within(column)
    if pa.types.is_timestamp(type_):
        per_day = _PER_DAY[type_.unit]
        first, last = _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1
        numbers = column.cast(pa.int64())
    elif pa.types.is_date(type_):
        first, last, numbers = _FIRST_DAY, _LAST_DAY, column.cast(pa.int32())
    else:
        return np.zeros(len(column), np.bool_)
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray((values < first) | (values > last), np.bool_)


def _far_within(column: Any) -> Mask:
    """Return the lists and maps with such an element. Values under a null list do not belong to the row."""
    offsets = column.offsets.to_numpy()
    children = (column.keys, column.items) if pa.types.is_map(column.type) else (column.values,)
    started = np.logical_or.reduce([_far(child) for child in children])
    counts = np.concatenate([[0], np.cumsum(started)])
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return np.asarray((counts[offsets[1:]] > counts[offsets[:-1]]) & there, np.bool_)
