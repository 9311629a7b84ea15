from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from potok.server.ksql.json_rows import RowWriter, schema_text, schema_tree
from potok.sql.types import BIGINT, BYTES, DATE, DOUBLE, INT, TIME, TIMESTAMP, VARCHAR, array, decimal, map_of, struct
from potok.statements.results import ResultColumn

NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 250_000, dt.UTC)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (INT, 7, "7"),
        (BIGINT, 2**62, "4611686018427387904"),
        (DOUBLE, 0.1, "0.1"),
        (DOUBLE, float("nan"), '"NaN"'),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (decimal(38, 2), Decimal("123456789012345678901234567890.10"), "123456789012345678901234567890.10"),
        (decimal(38, 20), Decimal("1E-20"), "0.00000000000000000001"),
        (VARCHAR, 'a "ü"', '"a \\"ü\\""'),
        (BYTES, b"\x00\xff", '"AP8="'),
        (DATE, dt.date(2026, 1, 31), '"2026-01-31"'),
        (TIME, dt.time(9, 5), '"09:05:00"'),
        (TIMESTAMP, NOON, '"2026-01-31T12:00:00.250"'),
        (array(TIMESTAMP), [NOON, None], '["2026-01-31T12:00:00.250",null]'),
        (map_of(VARCHAR, decimal(4, 2)), {"a": Decimal("1.50"), "b": None}, '{"a":1.50,"b":null}'),
        (map_of(INT, INT), {1: 2}, '{"1":2}'),
        (struct([("A", BYTES), ("B", array(DOUBLE))]), {"A": b"x", "B": [1.5]}, '{"A":"eA==","B":[1.5]}'),
        (VARCHAR, None, "null"),
    ],
)
def test_values_are_written_as_ksqldb_writes_them(type_: pa.DataType, value: Any, text: str) -> None:
    assert RowWriter([ResultColumn("A", type_)]).array((value,)).decode() == f"[{text}]"


def test_types_are_named_as_in_ksqldb() -> None:
    columns = [ResultColumn("ID", VARCHAR, is_key=True), ResultColumn("lower", array(decimal(4, 2)))]
    assert schema_text(columns) == "`ID` STRING KEY, `lower` ARRAY<DECIMAL(4, 2)>"


def test_nested_types_are_described_as_trees() -> None:
    tree = schema_tree(map_of(VARCHAR, struct([("A", INT)])))
    member = {"type": "STRUCT", "memberSchema": None}
    fields = [{"name": "A", "schema": {"type": "INTEGER", "fields": None, "memberSchema": None}}]
    assert tree == {"type": "MAP", "fields": None, "memberSchema": {**member, "fields": fields}}
