from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.records.keys import UnusableKeyError, decode_keys, encode_each_key, encode_key, encode_keys
from potok.records.schemas.schema import Schema
from records.arrays import SCALARS, TEXTS, columns

DYNAMIC = st.recursive(
    st.one_of(
        TEXTS,
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.binary(max_size=4),
        st.dates(),
        st.times(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS.filter(lambda name: name[:1] != "$"), inner, max_size=3),
    ),
    max_leaves=5,
)


def holds_nan(key: Any) -> bool:
    nested = key.values() if isinstance(key, dict) else key if isinstance(key, list) else ()
    return (isinstance(key, float) and not math.isfinite(key)) or any(map(holds_nan, nested))


@settings(max_examples=250)
@given(columns())
def test_typed_keys_read_back_and_one_by_one_are_the_same_bytes(case: tuple[Schema, list[Any], pa.Array]) -> None:
    schema, keys, column = case
    encoded = encode_keys(column)
    assert encoded.type == pa.binary()
    assert encoded.to_pylist() == [encode_key(key, schema.arrow) for key in keys]
    if not any(map(holds_nan, keys)):
        assert decode_keys(encoded.to_pylist(), schema.arrow) == keys


@given(st.lists(st.none() | DYNAMIC, max_size=4))
def test_keys_without_a_type_read_back(keys: list[Any]) -> None:
    encoded = encode_keys(keys).to_pylist()
    assert decode_keys(encoded) == keys
    assert encoded == [encode_key(key) for key in keys]


@pytest.mark.parametrize(
    ("arrow", "keys"),
    [
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.date32(), st.dates()),
        (pa.time32("ms"), SCALARS["time"]),
        (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
        (pa.bool_(), st.booleans()),
        (pa.binary(), st.binary(max_size=3)),
    ],
    ids=str,
)
def test_bytes_sort_as_their_keys_compare(arrow: pa.DataType, keys: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=30)
    @given(st.lists(keys, min_size=2, max_size=10))
    def check(items: list[Any]) -> None:
        encoded = encode_keys(pa.array(items, arrow)).to_pylist()
        assert decode_keys(sorted(encoded), arrow) == sorted(items)

    check()


def test_equal_keys_have_equal_bytes() -> None:
    assert encode_key(0.0, pa.float64()) == encode_key(-0.0, pa.float64())
    assert encode_key(0.0) == encode_key(-0.0)
    assert encode_key({"b": [0.0], "a": 1}) == encode_key({"a": 1, "b": [-0.0]})
    assert encode_key((1, "a")) == encode_key([1, "a"])
    assert encode_key(Decimal("1.50")) == encode_key(Decimal("1.5"))
    assert encode_key(Decimal("-0.0")) == encode_key(Decimal(0))
    riga = dt.timezone(dt.timedelta(hours=2))
    assert encode_key(dt.datetime(2025, 1, 1, 2, tzinfo=riga)) == encode_key(dt.datetime(2025, 1, 1, tzinfo=dt.UTC))
    assert encode_key(float("nan"), pa.float64()) == encode_key(-float("nan"), pa.float64())


def test_the_bytes_do_not_change_between_versions() -> None:
    assert encode_key("u", pa.string()) == b"u"
    assert encode_key(b"\xff", pa.binary()) == b"\xff"
    assert encode_key(1, pa.int64()) == encode_key(1, pa.int32()) == bytes.fromhex("8000000000000001")
    assert encode_key(-1, pa.int64()) == bytes.fromhex("7fffffffffffffff")
    assert encode_key(1.0, pa.float64()) == bytes.fromhex("bff0000000000000")
    assert encode_key(True, pa.bool_()) == b"\x01"
    assert encode_key({"b": 1, "a": "x"}, pa.struct([("b", pa.int64()), ("a", pa.string())])) == b'{"a":"x","b":1}'
    assert [encode_key(key) for key in ("1", 1, 1.0, True, None)] == [b'"1"', b"1", b"1.0", b"true", None]


def test_an_object_that_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(UnusableKeyError, match="key 1: cannot be a key: Type is not JSON serializable: object"):
        encode_keys(["a", object()])
    with pytest.raises(UnusableKeyError, match="not JSON serializable"):
        encode_key(object())
    with pytest.raises(UnusableKeyError, match="expected bigint, got string"):
        encode_key("x", pa.int64())
    each = encode_each_key(["a", object(), None])
    assert each.values.to_pylist() == [b'"a"', None, None]
    assert list(each.errors) == [1]


@pytest.mark.parametrize("key", [float("nan"), float("inf"), "\ud800", {"a": "\ud800"}])
def test_what_has_no_bytes_of_its_own_cannot_be_a_key(key: Any) -> None:
    with pytest.raises(UnusableKeyError, match="cannot be a key"):
        encode_key(key)


def test_text_that_is_half_of_a_character_is_not_a_key_of_a_table_of_text() -> None:
    with pytest.raises(UnusableKeyError, match="surrogate"):
        encode_key("\ud800", pa.string())


@pytest.mark.parametrize("key", [{"$decimal": "x"}, {"$bytes": 1}, {"$date": "soon"}])
def test_a_key_with_a_name_of_ours_comes_back(key: Any) -> None:
    assert decode_keys([encode_key(key)]) == [key]
