from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok import Record
from potok.errors import SchemaError
from potok.records.conversion.fit import Fitted
from potok.records.formats.json import json_format as json_decode
from potok.records.formats.json.block import readable_in_blocks
from potok.records.formats.json.json_format import JsonFormat, decode_rows, decode_typed
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from records.texts import values

JSON = JsonFormat()


@dataclass
class Point:
    x: int


class Order(Record):
    order_id: str
    amount: float


def test_without_a_schema_any_json_becomes_a_python_object() -> None:
    decoded = JSON.decode(pa.array([b'{"a":1}', b"[1,2]", b'"x"', None, b"null", b"1.5"], pa.binary()), None)
    assert decoded.column == [{"a": 1}, [1, 2], "x", None, None, 1.5]
    assert decoded.errors == {}


def test_without_a_schema_bad_json_is_an_error_of_its_row() -> None:
    decoded = JSON.decode(pa.array([b"{", b"1", b"", b"\xff", b"[" * 10_000], pa.binary()), None)
    assert decoded.column == [None, 1, None, None, None]
    assert decoded.errors.keys() == {0, 2, 3, 4}
    assert decoded.errors[2] == "the value is empty"


def test_only_the_asked_columns_are_read_and_checked() -> None:
    schema = declared_schema(Order)
    values = pa.array([b'{"order_id":5,"amount":1.5}', b'{"order_id":"o"}'], pa.binary())
    decoded = JSON.decode(values, schema, ["amount"])
    assert decoded.column.to_pylist() == [{"amount": 1.5}, None]
    assert decoded.errors == {1: 'field "amount" is missing or null'}
    assert JSON.decode(values, schema, []).column.to_pylist() == [{}, {}]
    with pytest.raises(SchemaError, match='no field "price"'):
        JSON.decode(values, schema, ["price"])


def test_python_objects_of_many_kinds_are_written() -> None:
    at = dt.datetime(2025, 1, 31, 12, tzinfo=dt.UTC)
    objects = [
        Point(1),
        Order("o", 1.0),
        (1, 2),
        {2, 1},
        Decimal("1.50"),
        b"\xff",
        at,
        {1: "x"},
        at.date(),
        float("nan"),
    ]
    encoded = JSON.encode([*objects, None], None)
    assert encoded.errors == {}
    assert [text and orjson.loads(text) for text in encoded.values.to_pylist()] == [
        {"x": 1},
        {"order_id": "o", "amount": 1.0},
        [1, 2],
        [1, 2],
        "1.50",
        "/w==",
        "2025-01-31T12:00:00Z",
        {"1": "x"},
        "2025-01-31",
        None,
        None,
    ]


def test_an_object_without_a_json_form_is_an_error_of_its_row() -> None:
    encoded = JSON.encode([1, object(), {"a": object()}, 2**70, "\ud800"], None)
    assert encoded.values.to_pylist() == [b"1", None, None, None, None]
    assert encoded.errors.keys() == {1, 2, 3, 4}
    assert encoded.errors[1] == "cannot be written as JSON: Type is not JSON serializable: object"


def test_python_objects_are_checked_against_the_schema_before_they_are_written() -> None:
    encoded = JSON.encode([Order("o", 1.0), {"order_id": "p", "amount": "x"}, None], declared_schema(Order))
    assert encoded.values.to_pylist() == [b'{"order_id":"o","amount":1.0}', None, None]
    assert encoded.errors == {1: 'field "amount": expected double, got string "x"'}


def test_chunked_and_text_columns_are_taken_too() -> None:
    values = pa.chunked_array([pa.array(['{"a":1}']), pa.array(['{"a":2}'])])
    assert JSON.decode(values, declared_schema("a bigint")).column.to_pylist() == [{"a": 1}, {"a": 2}]


PLAIN = "a bigint, b double, c string, d boolean, e array<string>, f struct<x: bigint, y: double>"
SCHEMAS = [
    PLAIN,
    "a bigint not null, b double not null, e array<double not null> not null, f struct<x: bigint not null> not null",
    "a int default 5, b double not null default 2.5, c string default 'q', e array<string> not null default json '[]'",
    "a timestamp, b timestamp not null, c string",
    "a smallint, e array<array<double>>, f array<struct<x: bigint, y: string not null>>",
    "f struct<f: struct<a: double not null, b: array<array<bigint not null>>> not null>",
    "a map<string, bigint>, b map<int, double not null>, c string",
    "a decimal(10,2), b double, c bigint, d boolean",
    "a date, b binary, c float, e array<timestamp>",
]


def schema(text: str) -> Schema:
    made = declared_schema(text)
    assert made is not None
    return made


def column(*texts: bytes | str | None) -> pa.Array:
    return pa.array([text.encode() if isinstance(text, str) else text for text in texts], pa.binary())


def decode(text: str, *texts: bytes | str | None) -> Fitted:
    return decode_typed(column(*texts), schema(text))


def rows(fitted: Fitted) -> list[Any]:
    # Not the objects but how they are written: that tells 0.0 from -0.0 and 1 from 1.0.
    return [repr(row) for row in fitted.column.to_pylist()]


BLOCKS = st.one_of(
    [st.tuples(st.just(made), st.lists(values(made), min_size=1, max_size=6)) for made in map(schema, SCHEMAS)]
)


@settings(max_examples=250)
@given(BLOCKS)
def test_a_block_is_read_as_its_rows_are(block: tuple[Schema, list[bytes | None]]) -> None:
    declared, texts = block
    # A slice of a longer column: offsets that do not begin at zero.
    whole = decode_typed(pa.array([b"{", *texts], pa.binary()).slice(1), declared)
    each = [decode_rows(pa.array([text], pa.binary()), declared) for text in texts]
    whole.column.validate(full=True)
    assert rows(whole) == [row for one in each for row in rows(one)]
    assert whole.errors == {row: one.errors[0] for row, one in enumerate(each) if one.errors}
    assert all(whole.column[row].as_py() is None for row in whole.errors)
    assert refused_by_orjson(texts) <= whole.errors.keys()


def refused_by_orjson(texts: list[bytes | None]) -> set[int]:
    refused = set()
    for row, text in enumerate(texts):
        if text is not None:
            try:
                orjson.loads(text)
            except orjson.JSONDecodeError:
                refused.add(row)
    return refused


def test_the_plain_types_are_read_in_blocks_and_the_others_row_by_row() -> None:
    assert [readable_in_blocks(schema(text)) for text in SCHEMAS] == [True] * 6 + [False] * 3
    assert not readable_in_blocks(schema("bigint"))


def test_a_good_block_is_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_decode, "decode_rows", None)
    fitted = decode(PLAIN, *['{"a":1,"b":2,"c":"x","d":true,"e":["y"],"f":{"x":1,"y":0.5}}', '{\n\t"c": "z"\r\n}'] * 50)
    assert fitted.errors == {}
    assert fitted.column[0].as_py() == {"a": 1, "b": 2.0, "c": "x", "d": True, "e": ["y"], "f": {"x": 1, "y": 0.5}}
    assert fitted.column[1].as_py()["c"] == "z"


def test_only_the_doubtful_rows_of_a_block_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []

    def spy(texts: pa.Array, declared: Schema) -> Fitted:
        again.extend(texts.to_pylist())
        return decode_rows(texts, declared)

    monkeypatch.setattr(json_decode, "decode_rows", spy)
    fitted = decode("b double not null", '{"b":1}', '{"b":null}', "", '{"b":-0}', '{"b":2}', None, '{"c":"NaN","b":3}')
    assert again == [b'{"b":null}', b"", b'{"b":-0}', None, b'{"c":"NaN","b":3}']
    assert fitted.errors == {1: 'field "b" is missing or null', 2: "the value is empty"}
    assert rows(fitted) == ["{'b': 1.0}", "None", "None", "{'b': 0.0}", "{'b': 2.0}", "None", "{'b': 3.0}"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"amount":"abc"}', 'field "amount": expected double, got string "abc"'),
        ('{"amount":true}', 'field "amount": expected double, got boolean true'),
        ('{"amount":1,"n":1.5}', 'field "n": expected bigint, got number 1.5'),
        ('{"amount":1,"n":9223372036854775808}', 'field "n": 9223372036854775808 is out of the range of bigint'),
        ("{}", 'field "amount" is missing or null'),
        ('{"amount":null}', 'field "amount" is missing or null'),
        ('{"amount":1,"tags":["a",2]}', 'field "tags[]": expected string, got number 2'),
        ('{"amount":1,"tags":"a"}', 'field "tags": expected array<string>, got string "a"'),
        ('{"amount":1,"address":{"city":5}}', 'field "address.city": expected string, got number 5'),
        ('{"amount":1,"at":"soon"}', 'field "at": expected ISO text or milliseconds, got string "soon"'),
        ("[1]", "the value: expected struct<"),
        ('{"amount":NaN}', "not valid JSON: "),
        ("{" * 10_000, "not valid JSON: "),
        (b"\xff", "not valid JSON: "),
        (b'{"amount":1,"z":"\xff"}', "not valid JSON: "),
        ('{"amount":1}{"amount":2}', "not valid JSON: "),
        ("", "the value is empty"),
    ],
)
def test_a_bad_value_says_what_is_wrong_with_it(text: str | bytes, reason: str) -> None:
    declared = "amount double not null, n bigint, tags array<string>, address struct<city: string>, at timestamp"
    fitted = decode(declared, '{"amount":1}', text, '{"amount":2}')
    assert list(fitted.errors) == [1]
    assert fitted.errors[1].startswith(reason)
    assert [row and row["amount"] for row in fitted.column.to_pylist()] == [1.0, None, 2.0]


def test_a_whole_number_fits_an_integer_however_it_is_written() -> None:
    fitted = decode("n bigint", '{"n":1.0}', '{"n":1e3}', '{"n":-0.0}', '{"n":9.3e18}')
    assert rows(fitted)[:3] == ["{'n': 1}", "{'n': 1000}", "{'n': 0}"]
    assert list(fitted.errors) == [3]


def test_a_missing_field_is_null_or_its_default() -> None:
    declared = "a bigint, b bigint default 7, c bigint not null default 8"
    fitted = decode(declared, "{}", '{"a":null,"b":null,"c":null}', '{"a":1,"b":2,"c":3}')
    assert fitted.errors == {}
    assert fitted.column.to_pylist() == [
        {"a": None, "b": 7, "c": 8},
        {"a": None, "b": None, "c": 8},
        {"a": 1, "b": 2, "c": 3},
    ]


def test_instants_are_numbers_or_text_and_both_in_one_block() -> None:
    texts = [
        '{"at":1700000000123}',
        '{"at":"2023-11-14T22:13:20.123Z"}',
        '{"at":"2023-11-15T00:13:20.123+02:00"}',
        '{"at":"2023-11-14 22:13:20.123"}',
    ]
    for chosen in (texts, texts[:1], texts[1:2], texts[1:3]):
        fitted = decode("at timestamp", *chosen)
        assert fitted.errors == {}
        assert {row["at"].timestamp() for row in fitted.column.to_pylist()} == {1700000000.123}


def test_decimals_are_exact() -> None:
    declared = "d decimal(38,18)"
    fitted = decode(
        declared, '{"d":0.100000000000000005}', '{"d":"12345678901234567890.000000000000000001"}', '{"d":1e-19}'
    )
    assert [str(row["d"]) for row in fitted.column.to_pylist()[:2]] == [
        "0.100000000000000005",
        "12345678901234567890.000000000000000001",
    ]
    assert list(fitted.errors) == [2]


def test_a_huge_value_is_read() -> None:
    text = '{"c":"' + "x" * 10_000_000 + '","a":1}'
    fitted = decode("a bigint, c string", '{"a":0}', text, '{"a":2}')
    assert [row["a"] for row in fitted.column.to_pylist()] == [0, 1, 2]


def test_a_column_of_many_blocks_keeps_its_order_and_the_rows_of_its_errors() -> None:
    count = 70_000
    texts = [f'{{"a":{row}}}'.encode() for row in range(count)]
    texts[33_000] = b"{"
    texts[69_999] = b'{"a":"x"}'
    fitted = decode_typed(pa.array(texts, pa.binary()), schema("a bigint"))
    assert list(fitted.errors) == [33_000, 69_999]
    numbers = fitted.column.field(0).to_pylist()
    assert numbers == [None if row in fitted.errors else row for row in range(count)]


def test_a_value_may_be_a_scalar_or_a_list() -> None:
    assert decode("bigint", "123", " 4 ", "null", None, '"x"').column.to_pylist() == [123, 4, None, None, None]
    assert decode("array<string>", '["a"]', "[]").column.to_pylist() == [["a"], []]
    assert decode("bigint", '"x"').errors == {0: 'the value: expected bigint, got string "x"'}


def test_no_values_are_an_empty_column() -> None:
    assert decode(PLAIN).column.type == schema(PLAIN).arrow
    assert decode("bigint").column.to_pylist() == []
