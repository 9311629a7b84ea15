"""Arithmetic against Python's own numbers."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.sql.expressions.arithmetic import calculate
from potok.sql.expressions.unify import arithmetic_type
from potok.sql.functions.function import Context

EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
ORACLE: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": EXACT.divide,
    "%": lambda a, b: EXACT.subtract(a, EXACT.multiply(b, _whole(EXACT.divide(a, b)))),
}


def _whole(value: Decimal) -> Decimal:
    return value.quantize(Decimal(1), rounding=decimal.ROUND_DOWN, context=EXACT)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    whole = st.integers(-(10**precision) + 1, 10**precision - 1) | st.integers(-9, 9)
    values = draw(st.lists(st.none() | whole, min_size=3, max_size=3))
    return pa.decimal128(precision, scale), [None if v is None else Decimal(v).scaleb(-scale, EXACT) for v in values]


@pytest.mark.parametrize("op", ORACLE)
@settings(max_examples=50)
@given(left=decimals(), right=decimals())
def test_decimals_are_computed_exactly_and_rounded_half_up(op: str, left: Any, right: Any) -> None:
    result = arithmetic_type(op, left[0], right[0])
    context = Context()
    found = calculate(op, pa.array(left[1], left[0]), pa.array(right[1], right[0]), 3, result, context)
    found.validate(full=True)
    assert found.type == result
    wanted = []
    for one, other in zip(left[1], right[1], strict=True):
        exact = None
        if one is not None and other is not None and (other or op not in "/%"):
            exact = ORACLE[op](one, other).quantize(Decimal(1).scaleb(-result.scale), context=EXACT)
        fits = exact is not None and abs(exact) < Decimal(10) ** (result.precision - result.scale)
        wanted.append(exact if fits else None)
    assert found.to_pylist() == wanted
    missing = {row for row in range(3) if wanted[row] is None and None not in (left[1][row], right[1][row])}
    assert set(context.failures) == missing


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%"])
@settings(max_examples=40)
@given(data=st.data())
def test_integers_wrap_as_those_of_java(op: str, bits: int, data: st.DataObject) -> None:
    type_ = pa.int32() if bits == 32 else pa.int64()
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    number = st.sampled_from([least, most, -1, 0, 1]) | st.integers(least, most)
    left, right = data.draw(number), data.draw(number)
    context = Context()
    found = calculate(op, pa.array([left], type_), pa.array([right], type_), 1, type_, context)[0].as_py()
    if right == 0 and op in "/%":
        assert found is None
        assert list(context.failures) == [0]
        return
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0
    exact = {"+": left + right, "-": left - right, "*": left * right, "/": quotient, "%": left - quotient * right}[op]
    assert found == (exact - least) % 2**bits + least
