from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from potok.records.formats.format import Decoded
from potok.records.formats.registry import format_named
from potok.records.rows import rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from records.arrays import columns
from records.round_trips import assert_round_trip


def decode(declared: str, *texts: str | None) -> Decoded:
    values = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    return format_named("sql_json").decode(values, declared_schema(declared))


def one(declared: str, text: str) -> Any:
    """The field X of a value, or the reason why there is none."""
    decoded = decode(f"X {declared}", f'{{"X":{text}}}')
    assert not isinstance(decoded.column, list)
    return decoded.errors[0] if decoded.errors else rows_of(decoded.column)[0]["X"]


@settings(max_examples=200)
@given(columns())
def test_what_was_written_reads_back(case: tuple[Schema, list[Any], pa.Array]) -> None:
    schema, _, column = case
    assert_round_trip("sql_json", schema, column)


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        *(
            ("int", "3", 3),
            ("int", "3.7", 3),
            ("int", "-3.7", -3),
            ("int", '"3"', 3),
            ("int", '"+3"', 3),
            ("int", "3e2", 300),
        ),
        *(("bigint", "9223372036854775807.9", 2**63 - 1), ("bigint", '"-5"', -5), ("bigint", "0E+90", 0)),
        *(
            ("double", "2", 2.0),
            ("double", '"2.5"', 2.5),
            ("double", '"-Infinity"', float("-inf")),
            ("double", '" 1e3 "', 1000.0),
        ),
        *(("double", "1e400", float("inf")), ("double", "-1e400", float("-inf")), ("double", "1e-400", 0.0)),
        *(("double", "1" + "0" * 400, float("inf")), ("double", "-1" + "0" * 400, float("-inf"))),
        *(("string", "1e400", "1E+400"), ("string", "1e-400", "1E-400"), ("string", "[1e400]", "[1E+400]")),
        *(("int", "1e-400", 0), ("bigint", "1e-999999999", 0)),
        ("decimal(38,0)", "123456789012345678901234567890", Decimal("123456789012345678901234567890")),
        *(("boolean", "true", True), ("boolean", "null", None)),
        *(("string", '"a"', "a"), ("string", "3", "3"), ("string", "1.50", "1.50"), ("string", "true", "true")),
        *(("string", "1e5", "1E+5"), ("string", "-0.0", "0.0"), ("string", "0.00000001", "1E-8")),
        ("string", "123456789012345678901234567890", "123456789012345678901234567890"),
        ("string", '[1, "a", null, [true, 2.50]]', "[1, a, null, [true, 2.50]]"),
        ("string", '{"b": 1.50, "a": [1, null, "x\\"y"]}', '{"b":1.50,"a":[1,null,"x\\"y"]}'),
        *(("decimal(5,2)", "1.5", Decimal("1.50")), ("decimal(5,2)", '"-1.50"', Decimal("-1.50"))),
        ("decimal(38,18)", "0.100000000000000005", Decimal("0.100000000000000005")),
        *(("binary", '"AQI="', b"\x01\x02"), ("binary", '""', b"")),
        *(("date", "1", dt.date(1970, 1, 2)), ("date", '"-1"', dt.date(1969, 12, 31))),
        *(("time", "3723004", dt.time(1, 2, 3, 4000)), ("time", '"0"', dt.time(0))),
        ("timestamp", "1700000000123", dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC)),
        ("timestamp", '"-1"', dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)),
        ("timestamp", "1.9", dt.datetime(1970, 1, 1, 0, 0, 0, 1000, dt.UTC)),
        *(
            ("array<int>", '["1", 2.5, null]', [1, 2, None]),
            ("map<string, string>", '{"a":1.0,"b":null}', {"a": "1.0", "b": None}),
        ),
    ],
)
def test_a_value_of_another_kind_becomes_what_ksqldb_makes_of_it(declared: str, text: str, value: Any) -> None:
    found = one(declared, text)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("declared", "text", "reason"),
    [
        *(("int", '"3.0"', "expected int"), ("int", "true", "expected int"), ("int", "[1]", "expected int")),
        *(("int", "2147483648", "out of the range of int"), ("bigint", "1e19", "out of the range of bigint")),
        *(("int", "1e400", "out of the range of int"), ("bigint", "9223372036854775808", "out of the range of bigint")),
        *(("decimal(5,2)", "1e400", "does not fit"), ("decimal(5,2)", "1e-400", "does not fit")),
        *(("decimal(5,2)", "1e99999999999999999999", "does not fit"), ("string", "1e9999999999", "exponent")),
        *(("double", '"abc"', "expected double"), ("double", "false", "expected double")),
        *(("boolean", '"true"', "expected boolean"), ("boolean", "1", "expected boolean")),
        *(("decimal(3,2)", "1.234", "does not fit"), ("decimal(3,2)", "10.0", "does not fit")),
        *(
            ("decimal(3,2)", "true", "expected decimal"),
            ("binary", '"x"', "base64"),
            ("binary", "1", "expected binary"),
        ),
        *(
            ("date", '"2020-01-01"', "expected date"),
            ("date", "99999999", "outside the years"),
            ("time", "86400000", "not a time"),
        ),
        *(("time", "-1", "not a time"), ("timestamp", '"2020-01-01T00:00:00Z"', "expected timestamp")),
        *(
            ("timestamp", "1e18", "years"),
            ("array<int>", "1", "expected array"),
            ("map<string, int>", "[]", "expected map"),
        ),
        *(("struct<Y: int>", '"x"', "expected struct"), ("string", '"\\ud83d"', ""), ("string", '{"a":"\\ud83d"}', "")),
    ],
)
def test_what_cannot_be_read_is_an_error_of_its_row_alone(declared: str, text: str, reason: str) -> None:
    decoded = decode(f"X {declared}, Y int", '{"Y":1}', f'{{"X":{text},"Y":2}}', '{"Y":3}')
    assert list(decoded.errors) == [1]
    assert reason in decoded.errors[1]
    assert not isinstance(decoded.column, list)
    assert [row and row["Y"] for row in decoded.column.to_pylist()] == [1, None, 3]


def test_names_match_whatever_their_case_and_the_exact_one_first() -> None:
    texts = [
        '{"user_id":1}',
        '{"USER_ID":2}',
        '{"User_Id":3}',
        '{"user_id":4,"USER_ID":5}',
        '{"USER_ID":null,"user_id":6}',
        "{}",
    ]
    decoded = decode("USER_ID int", *texts)
    assert decoded.errors == {}
    assert not isinstance(decoded.column, list)
    assert [row["USER_ID"] for row in decoded.column.to_pylist()] == [1, 2, 3, 5, None, None]


def test_a_name_that_was_quoted_for_its_small_letters_matches_only_itself() -> None:
    decoded = decode("`userId` int, `ИМЯ` int", '{"userId":1,"имя":2}', '{"USERID":1,"userid":2}')
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{"userId": 1, "ИМЯ": 2}, {"userId": None, "ИМЯ": None}]


def test_only_the_columns_that_are_asked_for_are_read_and_checked() -> None:
    values = pa.array([b'{"a":1,"B":"x"}'], pa.binary())
    decoded = format_named("sql_json").decode(values, declared_schema("A int, B int"), ["A"])
    assert decoded.errors == {}
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{"A": 1}]


def test_values_are_written_compact_with_nulls_and_numbers() -> None:
    schema = declared_schema(
        "ID int, D decimal(6,2), T timestamp, DAY date, AT time, B binary, X double, M map<string, int>, N string"
    )
    assert schema is not None
    row = {
        "ID": 1,
        "D": Decimal("12.50"),
        "T": dt.datetime(1970, 1, 1, 0, 0, 1, 999, dt.UTC),
        "DAY": dt.date(1970, 1, 3),
        "AT": dt.time(0, 0, 1),
        "B": b"\x01\x02",
        "X": float("nan"),
        "M": {"k": None},
        "N": None,
    }
    text = b'{"ID":1,"D":12.50,"T":1000,"DAY":2,"AT":1000,"B":"AQI=","X":"NaN","M":{"k":null},"N":null}'
    assert format_named("sql_json").encode([row, None], schema).values.to_pylist() == [text, None]


def test_a_bare_value_needs_no_object() -> None:
    assert decode("string", '"a"', "1.50", "null", None).column.to_pylist() == ["a", "1.50", None, None]  # type: ignore[union-attr]
    assert decode("array<timestamp>", "[1000]").errors == {}
    assert decode("int", '"x"').errors == {0: 'the value: expected int, got string "x"'}
    assert format_named("sql_json").encode(
        pa.array([dt.date(1970, 1, 2)]), declared_schema("date")
    ).values.to_pylist() == [b"1"]


def test_without_a_type_it_is_plain_json() -> None:
    form = format_named("sql_json")
    assert form.decode(form.encode([{"a": 1}, None], None).values, None).column == [{"a": 1}, None]


def test_names_are_written_as_they_are_spelled_and_others_in_small_letters() -> None:
    type_ = pa.struct([("ID", pa.int64()), ("ITEMS", pa.list_(pa.struct([("PRODUCTID", pa.string())])))])
    column = pa.array([{"ID": 0, "ITEMS": []}, None, {"ID": 2, "ITEMS": [{"PRODUCTID": "p"}]}], type_)
    written = format_named("sql_json;names=id,productId").encode(column.slice(1), declared_schema(type_))
    assert written.values.to_pylist() == [None, b'{"id":2,"items":[{"productId":"p"}]}']


def test_a_number_that_no_double_can_hold_does_not_spoil_the_other_columns() -> None:
    decoded = decode("X int", '{"X":1,"Y":1e400}', '{"X":2,"Y":[-1e999]}')
    assert not isinstance(decoded.column, list)
    assert (decoded.errors, decoded.column.to_pylist()) == ({}, [{"X": 1}, {"X": 2}])
