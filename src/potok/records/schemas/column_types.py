"""The Arrow types of columns, and their names in DDL."""

from __future__ import annotations

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", "UTC")
LOCAL_TIMESTAMP = pa.timestamp("us")
DECIMAL = pa.decimal128(38, 18)
TIME = pa.time32("ms")

TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": LOCAL_TIMESTAMP,
}
