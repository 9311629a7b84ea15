from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from potok.expressions import truthy

NESTED = pa.struct([("a", pa.int64())])


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int64(), [0, 1, -1, None]),
        (pa.int8(), [0, 1]),
        (pa.float64(), [0.0, -0.0, 0.1, math.nan, math.inf, None]),
        (pa.string(), ["", "a", " ", None]),
        (pa.binary(), [b"", b"\0", None]),
        (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("0.01"), None]),
        (pa.list_(pa.int64()), [[], [0], [None], None]),
        (pa.map_(pa.string(), pa.int64()), [{}, {"a": 0}, None]),
        (NESTED, [{"a": None}, {"a": 1}, None]),
        (pa.date32(), [dt.date(1970, 1, 1), None]),
        (pa.timestamp("us"), [dt.datetime(1970, 1, 1), None]),
        (pa.duration("us"), [dt.timedelta(0), dt.timedelta(1), None]),
        (pa.time64("us"), [dt.time(0), None]),
        (pa.null(), [None]),
        (pa.uint64(), [0, 2**64 - 1]),
    ],
)
def test_a_value_is_true_where_python_calls_it_true(type_: pa.DataType, values: list[Any]) -> None:
    column = pa.array([None, *values], type_).slice(1)
    assert truthy(column).to_pylist() == [bool(value) for value in values]


def test_dynamic_columns_are_asked_value_by_value() -> None:
    assert truthy([0, "a", None, {}, [1]]).to_pylist() == [False, True, False, False, True]
