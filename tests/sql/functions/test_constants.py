"""Computing with arguments that are the same everywhere gives what row by row gives."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.sql.functions.constants import constant, is_ascii
from potok.sql.functions.function import Context, ScalarFunction
from potok.sql.functions.registry import function_named
from potok.sql.types import BYTES, DOUBLE, INT, VARCHAR, decimal

TEXT = st.text("abж😀 .", max_size=6)
RAW = st.binary(max_size=5)
SMALL = st.integers(-8, 8)
PRICE = st.decimals(-99, 99, places=2)

CALLS = [
    ("REPLACE", (VARCHAR, VARCHAR, VARCHAR), TEXT, (TEXT, TEXT)),
    ("SUBSTRING", (VARCHAR, INT), TEXT, (SMALL,)),
    ("SUBSTRING", (VARCHAR, INT, INT), TEXT, (SMALL, SMALL)),
    ("SUBSTRING", (BYTES, INT, INT), RAW, (SMALL, SMALL)),
    ("LPAD", (VARCHAR, INT, VARCHAR), TEXT, (SMALL, TEXT)),
    ("RPAD", (VARCHAR, INT, VARCHAR), TEXT, (SMALL, TEXT)),
    ("SPLIT", (VARCHAR, VARCHAR), TEXT, (TEXT,)),
    ("SPLIT", (BYTES, BYTES), RAW, (st.binary(max_size=1),)),
    ("INSTR", (VARCHAR, VARCHAR), st.text("ab", max_size=6), (st.text("ab", max_size=2),)),
    ("ROUND", (DOUBLE, INT), st.floats(width=64), (SMALL,)),
    ("TRUNC", (DOUBLE, INT), st.floats(width=64), (SMALL,)),
    ("ROUND", (decimal(4, 2), INT), PRICE, (SMALL,)),
    ("TRUNC", (decimal(4, 2), INT), PRICE, (SMALL,)),
    ("INT_FROM_BYTES", (BYTES, VARCHAR), st.binary(min_size=4, max_size=5), (st.sampled_from(["BIG_ENDIAN", "x"]),)),
]


def call(name: str, types: tuple[pa.DataType, ...], columns: list[list[Any]]) -> tuple[list[Any], set[int]]:
    function = function_named(name)
    assert isinstance(function, ScalarFunction)
    overload, accepted = next(
        (o, a) for o in function.overloads if (a := o.accept(types)) and tuple(a.arguments) == types
    )
    context = Context()
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    found = overload.compute(arrays, len(columns[0]), accepted.result, context)
    assert found.type == accepted.result
    return found.to_pylist(), set(context.failures)


@pytest.mark.parametrize(
    ("name", "types", "values", "others"), CALLS, ids=[f"{c[0]}-{len(c[1])}-{c[1][0]}" for c in CALLS]
)
@given(data=st.data())
def test_a_constant_counts_like_a_column(
    name: str, types: tuple[pa.DataType, ...], values: Any, others: Any, data: st.DataObject
) -> None:
    column = data.draw(st.lists(st.none() | values, min_size=1, max_size=6))
    constants = [data.draw(other) for other in others]
    at_once, noted = call(name, types, [column, *([value] * len(column) for value in constants)])
    # One more row, without constants, makes all of them columns.
    by_row, noted_by_row = call(name, types, [[*column, None], *([*[v] * len(column), None] for v in constants)])
    assert repr(at_once) == repr(by_row[:-1])
    assert noted == noted_by_row


@given(st.lists(st.floats(-1e12, 1e12) | st.decimals(-1000, 1000, places=3).map(float), min_size=1), st.integers(0, 9))
def test_a_double_is_rounded_as_its_decimal_text_is(values: list[float], places: int) -> None:
    def by_text(value: float, mode: str) -> float:
        return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=mode)) + 0.0

    columns = [values, [places] * len(values)]
    rounded = [by_text(v, ROUND_HALF_UP if v > 0 else ROUND_HALF_DOWN) for v in values]
    assert list(map(repr, call("ROUND", (DOUBLE, INT), columns)[0])) == list(map(repr, rounded))
    cut = [by_text(v, ROUND_DOWN) for v in values]
    assert list(map(repr, call("TRUNC", (DOUBLE, INT), columns)[0])) == list(map(repr, cut))


def test_a_constant_is_repeated_in_every_row() -> None:
    assert constant(pa.array(["a", "a"])) == "a"
    assert constant(pa.array([0])) == 0
    assert constant(pa.array(["a", "b", "a"])) is None
    assert constant(pa.array(["a", None])) is None
    assert constant(pa.array([], INT)) is None


def test_a_column_of_nothing_is_ascii() -> None:
    assert is_ascii(pa.array([None, "a"]))
    assert is_ascii(pa.array([None], VARCHAR))
    assert not is_ascii(pa.array(["a", "ж"]))
