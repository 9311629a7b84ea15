"""The aggregates of SQL.

An `AggregateCall` is not pickled: the registry finds it by name, types and literals. States are plain data: numbers,
strings, lists, dicts with string keys, and the values themselves.
"""

from __future__ import annotations

from typing import Final

from potok.sql.functions.aggregates.collections import ATTR, COLLECT_LIST, COLLECT_SET, COUNT_DISTINCT, HISTOGRAM
from potok.sql.functions.aggregates.extremes import MAX, MIN, TOPK, TOPKDISTINCT
from potok.sql.functions.aggregates.numbers import AVG, COUNT, SUM, SUM_LIST
from potok.sql.functions.aggregates.offsets import EARLIEST_BY_OFFSET, LATEST_BY_OFFSET
from potok.sql.functions.aggregates.spread import CORRELATION, STDDEV_SAMP, STDDEV_SAMPLE

FUNCTIONS: Final = (
    ATTR,
    AVG,
    COLLECT_LIST,
    COLLECT_SET,
    CORRELATION,
    COUNT,
    COUNT_DISTINCT,
    EARLIEST_BY_OFFSET,
    HISTOGRAM,
    LATEST_BY_OFFSET,
    MAX,
    MIN,
    STDDEV_SAMP,
    STDDEV_SAMPLE,
    SUM,
    SUM_LIST,
    TOPK,
    TOPKDISTINCT,
)
