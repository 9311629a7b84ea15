"""Encode scalars as JSON, compatible with ksqlDB."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from potok.records.formats.json.encode import base64_of, decimals, doubles, quoted


def lenient_scalars(column: pa.Array) -> pa.Array:
    """Encode scalars as JSON text: timestamps and times in milliseconds, dates in days, decimals with all their digits,
    bytes in base64. A double that is not finite is a string, because JSON has no number for it."""
    arrow = column.type
    if pa.types.is_floating(arrow):
        return _doubles(column)
    if pa.types.is_decimal(arrow):
        return decimals(column)
    if pa.types.is_binary(arrow):
        return quoted(base64_of(column))
    return counted(column).cast(pa.string())


def counted(column: pa.Array) -> pa.Array:
    """Convert timestamps and times to milliseconds and dates to days; leave other types alone."""
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        # Round down, also before 1970.
        return pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", arrow.tz)).cast(pa.int64())
    if pa.types.is_date(arrow) or pa.types.is_time(arrow):
        return column.cast(pa.int32())
    return column


def _doubles(column: pa.Array) -> pa.Array:
    texts = doubles(column)
    if texts.null_count == column.null_count:
        return texts
    numbers = column.cast(pa.float64())
    infinite = pc.if_else(pc.greater(numbers, 0), '"Infinity"', '"-Infinity"')
    return pc.coalesce(texts, pc.if_else(pc.is_nan(numbers), '"NaN"', infinite))
