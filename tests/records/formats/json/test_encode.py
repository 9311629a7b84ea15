from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
from hypothesis import given, settings

from potok.records.formats.json.encode import encode_typed
from potok.records.formats.json.json_format import decode_typed
from potok.records.formats.json.objects import dumps
from potok.records.rows import rows_of
from potok.records.schemas.schema import Schema
from records.arrays import columns


def plain(value: Any) -> Any:
    """What JSON makes of a value, written down here once more; decimals with all their digits."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, dt.time):
        return value.isoformat("milliseconds")
    if isinstance(value, bytes | dt.date):
        return orjson.loads(dumps(value))
    return value


@settings(max_examples=300)
@given(columns())
def test_a_column_is_written_as_its_rows_are(case: tuple[Schema, list[Any], pa.Array]) -> None:
    _, _, column = case
    texts = encode_typed(column).to_pylist()
    rows = rows_of(column)
    assert [text is None for text in texts] == [row is None for row in rows]
    assert repr([None if text is None else orjson.loads(text) for text in texts]) == repr(plain(rows))


@settings(max_examples=150)
@given(columns())
def test_what_was_written_reads_back(case: tuple[Schema, list[Any], pa.Array]) -> None:
    schema, _, column = case
    again = decode_typed(encode_typed(column), schema)
    assert again.errors == {}
    assert repr(plain(rows_of(again.column))) == repr(plain(rows_of(column)))


def test_a_double_looks_like_one() -> None:
    numbers = [100.0, -3.0, 0.1, 1e22, 1e-7, 123456789012.0, -0.0]
    texts = [text.decode() for text in encode_typed(pa.array(numbers)).to_pylist()]
    assert all(type(orjson.loads(text)) is float for text in texts)
    assert texts[0] == "100.0"


def test_text_is_escaped_where_it_must_be() -> None:
    texts = encode_typed(pa.array(['say "x"', "a\\b", "\n", "\x00", "plain", "é😀", None, "\x7f"])).to_pylist()
    assert texts[:2] == [b'"say \\"x\\""', b'"a\\\\b"']
    assert [text and orjson.loads(text) for text in texts] == [
        'say "x"',
        "a\\b",
        "\n",
        "\x00",
        "plain",
        "é😀",
        None,
        "\x7f",
    ]


def test_an_order_is_written_in_the_order_of_its_fields() -> None:
    column = pa.array(
        [{"id": "o-1", "amount": 120.0, "items": ["a", "b"], "at": dt.datetime(2025, 1, 31, tzinfo=dt.UTC)}, None]
    )
    assert encode_typed(column).to_pylist() == [
        b'{"id":"o-1","amount":120.0,"items":["a","b"],"at":"2025-01-31T00:00:00Z"}',
        None,
    ]


def test_a_column_of_many_blocks_keeps_its_order() -> None:
    numbers = pa.array(range(150_000), pa.int64())
    assert encode_typed(numbers).cast(pa.string()).cast(pa.int64()).equals(numbers)
