from __future__ import annotations

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.log.record_limits import keyless, oversized, record_sizes

ROWS = [
    {"key": b"a", "value": b"bcd", "headers": [{"name": "é", "value": b"xy"}, {"name": "q", "value": None}]},
    {"key": None, "value": None, "headers": None},
    {"key": b"a", "value": b"b", "headers": []},
    {"key": b"a", "value": b"b", "headers": [{"name": "n", "value": b"12345"}]},
]
BATCH = pa.RecordBatch.from_pylist(ROWS, LOG_SCHEMA)


def test_a_record_is_as_large_as_its_key_its_value_and_its_own_headers() -> None:
    assert record_sizes(BATCH).tolist() == [9, 0, 2, 8]
    assert record_sizes(BATCH, per_header=10).tolist() == [29, 0, 2, 18]
    assert record_sizes(BATCH.slice(1, 2)).tolist() == [0, 2]
    assert record_sizes(BATCH.slice(3)).tolist() == [8]


def test_only_those_over_the_limit_are_named() -> None:
    assert oversized(BATCH, 9) == {}
    assert oversized(BATCH, 8) == {0: "a record of 9 bytes is over the limit of 8"}
    assert set(oversized(BATCH, 8, per_record=1)) == {0, 3}
    assert set(oversized(BATCH, 17, per_header=10)) == {0, 3}
    assert oversized(BATCH.slice(0, 0), 0) == {}


def test_records_without_a_key_are_named() -> None:
    assert keyless("t", BATCH.column("key")) == {1: 'topic "t" is compacted and rejects records without a key'}
    assert keyless("t", pa.array([b"", b"k"])) == {}
