from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.format import Decoded
from potok.records.formats.registry import format_named
from potok.records.rows import column_of
from potok.records.schemas.declared_schema import declared_schema
from records.arrays import SCALARS
from records.round_trips import assert_round_trip

DECLARED = declared_schema(", ".join(f"C{index} {name}" for index, name in enumerate(SCALARS)))


def decode(declared: str, *texts: str | None, delimiter: str = ",") -> Decoded:
    values = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    return format_named(f"sql_delimited;delimiter={delimiter}").decode(values, declared_schema(declared))


def rows(decoded: Decoded) -> list[Any]:
    assert not isinstance(decoded.column, list)
    return decoded.column.to_pylist()


ROWS = st.tuples(*[st.none() | items for items in SCALARS.values()])


@settings(max_examples=150)
@given(st.lists(ROWS, max_size=3), st.sampled_from([",", "|", "TAB", "SPACE", ";", "^", "-", "é", "x", "0"]))
def test_what_was_written_reads_back(given_rows: list[tuple[Any, ...]], delimiter: str) -> None:
    assert DECLARED is not None
    # Empty text and empty bytes cannot be distinguished from null.
    emptied = [[None if item in ("", b"") else item for item in row] for row in given_rows]
    objects = [dict(zip(DECLARED.names, row, strict=True)) for row in emptied]
    column = column_of([*objects, None], DECLARED).column
    assert_round_trip(f"sql_delimited;delimiter={delimiter}", DECLARED, column)


def test_everything_that_can_be_counted_is_a_number() -> None:
    declared = "A int, B timestamp, C date, D time, E decimal(6,2), F binary, G double, H boolean"
    decoded = decode(declared, "1,1000,2,3000,4.5,AQI=,NaN,TRUE", " 1 ,,,,,,,")
    assert decoded.errors == {}
    first, second = rows(decoded)
    assert repr(first) == repr(
        {
            "A": 1,
            "B": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            "C": dt.date(1970, 1, 3),
            "D": dt.time(0, 0, 3),
            "E": Decimal("4.50"),
            "F": b"\x01\x02",
            "G": float("nan"),
            "H": True,
        }
    ).replace("datetime.timezone.utc", repr(first["B"].tzinfo))
    assert second == dict.fromkeys("ABCDEFGH") | {"A": 1}


def test_a_field_in_quotes_may_hold_anything() -> None:
    texts = ['"a,b",1', '"say ""x""" ,2', '"two\r\nlines",3', 'in "the" middle,4', '"",5', " spaced ,6", "x,7\r\n"]
    decoded = decode("A string, B int", *texts)
    assert decoded.errors == {}
    assert [row["A"] for row in rows(decoded)] == [
        "a,b",
        'say "x"',
        "two\r\nlines",
        'in "the" middle',
        None,
        " spaced ",
        "x",
    ]
    assert [row["B"] for row in rows(decoded)] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1", "expected 2 fields, got 1"),
        ("a,1,2", "expected 2 fields, got 3"),
        ('"a,1', "the quote at character 1 is not closed"),
        ('"a"b,1', "the quote at character 1 is not closed before the end of its field"),
        ("a,1\nb,2", "a second line begins at character 4"),
        ("a,x", 'field "B": expected int'),
        ("a,3.5", 'field "B": expected int'),
        ("a,2147483648", "out of the range of int"),
        ("", "the value is empty"),
    ],
)
def test_a_bad_line_is_an_error_of_its_row_alone(text: str, reason: str) -> None:
    decoded = decode("A string, B int", "a,1", text, "b,2")
    assert list(decoded.errors) == [1]
    assert reason in decoded.errors[1]
    assert rows(decoded) == [{"A": "a", "B": 1}, None, {"A": "b", "B": 2}]


def test_text_is_quoted_where_a_reader_would_stumble() -> None:
    schema = declared_schema("A string, B string")
    pairs = [("a", "b"), ("a,b", 'c"d'), (None, None), (" a", "b "), ("é", "é"), ("#", "-"), ("a\n", "")]
    encoded = format_named("sql_delimited").encode([{"A": a, "B": b} for a, b in pairs], schema)
    assert [value.decode() for value in encoded.values.to_pylist()] == [
        *("a,b", '"a,b","c""d"', ",", '" a","b "', '"é",é', '"#",-', '"a\n",')
    ]


def test_the_first_field_is_quoted_unless_it_is_null_or_starts_with_a_letter_or_digit() -> None:
    texts = [None, "", "-1", "_x", "(a)", "~", "é", "a-b", "7", "Z"]
    encoded = format_named("sql_delimited").encode(
        [{"A": text, "B": text} for text in texts], declared_schema("A string, B string")
    )
    assert [value.decode() for value in encoded.values.to_pylist()] == [
        *(",", '"",', '"-1",-1', '"_x",_x', '"(a)",(a)', '"~",~', '"é",é', "a-b,a-b", "7,7", "Z,Z")
    ]
    encoded = format_named("sql_delimited").encode(
        [{"A": -5, "B": Decimal("-0.50")}], declared_schema("A int, B decimal(4,2)")
    )
    assert encoded.values.to_pylist() == [b'"-5",-0.50']


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *(
            (5e-324, "4.9E-324"),
            (1e-323, "9.9E-324"),
            (1.5e-323, "1.5E-323"),
            (2.2250738585072014e-308, "2.2250738585072014E-308"),
        ),
        *(
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (123456789.0, "1.23456789E8"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
        ),
        *(
            (1e23, "1.0E23"),
            (1.7976931348623157e308, "1.7976931348623157E308"),
            (0.0, "0.0"),
            (float("inf"), "Infinity"),
        ),
    ],
)
def test_doubles_are_written_as_java_does(number: float, text: str) -> None:
    schema = declared_schema("A int, B double")
    encoded = format_named("sql_delimited").encode([{"A": 1, "B": number}], schema)
    assert encoded.values.to_pylist() == [f"1,{text}".encode()]
    assert rows(decode("A int, B double", f"1,{text}")) == [{"A": 1, "B": number}]


def test_a_bare_column_and_a_part_of_the_columns() -> None:
    assert rows(decode("bigint", "5", None, "x"))[:2] == [5, None]
    values = pa.array([b"1|x|3"], pa.binary())
    decoded = format_named("sql_delimited;delimiter=|").decode(values, declared_schema("A int, B int, C int"), ["C"])
    assert decoded.errors == {}
    assert rows(decoded) == [{"C": 3}]


def test_a_boolean_is_true_or_false() -> None:
    decoded = decode("A boolean", "false", "True", "yes")
    assert rows(decoded) == [{"A": False}, {"A": True}, None]
    assert decoded.errors == {2: 'expected true or false, got string "yes"'}


def test_what_cannot_be_delimited_is_refused() -> None:
    for declared in ("A array<int>, B int", "A struct<X: int>", "map<string, int>"):
        with pytest.raises(SchemaError, match="cannot hold"):
            decode(declared)
    with pytest.raises(SchemaError, match="need a declared type"):
        format_named("sql_delimited").decode(pa.array([], pa.binary()), None)
