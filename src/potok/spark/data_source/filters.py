"""Filters that Spark pushes down: they narrow what is read, and Spark applies them again to what it gets."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual
from pyspark.sql.datasource import StringStartsWith as StartsWith

from potok.clock import epoch_ms
from potok.records.keys import UnusableKeyError, encode_key
from potok.snapshots.rows.columns import KEY, WINDOW_START, Part
from potok.snapshots.rows.key_ranges import ALL, Span, span_of_prefix, span_of_range
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.row_reader import EVER
from potok.state.store import after_prefix

_PLANNER = "pyspark.sql.worker.data_source_pushdown_filters"

Bounds = tuple[float, float]
"""From the first to the last value, both inclusive."""


def pushes_filters() -> bool:
    """Return whether Spark asks this process to push down filters.

    Spark rejects a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is false, its default, and
    tells a reader the setting only by the program that plans it.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PLANNER in sys.modules or (main is not None and main.name == _PLANNER)


def part_of(filters: Sequence[Filter], layout: TableLayout) -> Part:
    """Return the part of a table that can satisfy all filters."""
    keys: set[bytes] | None = None
    span, starts = ALL, EVER
    for found in filters:
        if _column(found) == KEY:
            wanted = _keys(found, layout.key_type)
            if wanted is not None:
                keys = wanted if keys is None else keys & wanted
            span = _narrowed(span, _key_span(found, layout.key_type))
        elif _column(found) == WINDOW_START:
            low, high = _instants(found)
            starts = max(starts[0], low), min(starts[1], high)
    return Part(None if keys is None else tuple(sorted(keys)), span, starts)


def numbers_between(filters: Sequence[Filter], column: str) -> Bounds:
    """Return the bounds that filters set to a column of integers."""
    low, high = EVER
    for found in filters:
        if _column(found) == column:
            for least, most in _bounds(found):
                low, high = max(low, least), min(high, most)
    return low, high


def instants_between(filters: Sequence[Filter], column: str) -> Bounds:
    """Return the bounds that filters set to a column of instants, in milliseconds."""
    low, high = EVER
    for found in filters:
        if _column(found) == column:
            least, most = _instants(found)
            low, high = max(low, least), min(high, most)
    return low, high


def _column(found: Filter) -> str | None:
    path: tuple[str, ...] = getattr(found, "attribute", ())
    return path[0] if len(path) == 1 else None


def _keys(found: Filter, key_type: pa.DataType | None) -> set[bytes] | None:
    """Return the canonical keys that satisfy a filter; None if they cannot be listed."""
    if key_type is None:
        return None
    values = [found.value] if isinstance(found, EqualTo) else list(found.value) if isinstance(found, In) else None
    if values is None:
        return None
    try:
        return {key for value in values if (key := encode_key(value, key_type)) is not None}
    except UnusableKeyError:
        return None


def _key_span(found: Filter, key_type: pa.DataType | None) -> Span:
    match found:
        case StartsWith(value=value):
            return span_of_prefix(value, key_type)
        case GreaterThan(value=value) | GreaterThanOrEqual(value=value):
            return span_of_range(value, None, key_type)
        case LessThan(value=value):
            return span_of_range(None, value, key_type)
        case LessThanOrEqual(value=value):
            start, stop = span_of_range(None, value, key_type)
            return start, None if stop is None else after_prefix(stop)
    return ALL


def _narrowed(one: Span, other: Span) -> Span:
    stops = [stop for stop in (one[1], other[1]) if stop is not None]
    return max(one[0], other[0]), min(stops, default=None)


def _bounds(found: Filter) -> Iterator[Bounds]:
    value: Any = getattr(found, "value", None)
    match found:
        case EqualTo():
            yield value, value
        case In() if value:
            yield min(value), max(value)
        case GreaterThan() | GreaterThanOrEqual():
            yield value, math.inf
        case LessThan() | LessThanOrEqual():
            yield -math.inf, value


def _instants(found: Filter) -> Bounds:
    value: Any = getattr(found, "value", None)
    if isinstance(value, list | tuple) or not isinstance(value, datetime):
        return EVER
    at = epoch_ms(value)
    match found:
        case EqualTo():
            return at, at
        case GreaterThan() | GreaterThanOrEqual():
            return at, math.inf
        case LessThan() | LessThanOrEqual():
            return -math.inf, at
    return EVER
