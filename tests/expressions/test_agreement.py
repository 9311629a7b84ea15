"""The central promise of tracing: natively or as Python, a lambda gives the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from expressions import grammar
from expressions.agreement import ARGUMENTS, assert_agrees
from expressions.rows import Rows
from potok.expressions import Traced, functions, trace

SCOPE: dict[str, Any] = {**functions.FUNCTIONS, **vars(grammar)}


@settings(max_examples=700)
@given(source=grammar.lambdas(), seed=st.integers(0, 2**32), count=st.sampled_from([0, 1, 25, 25, 25]))
def test_a_traced_lambda_returns_what_python_returns_in_every_row_it_vouches_for(
    source: str, seed: int, count: int
) -> None:
    function = eval(source, dict(SCOPE))
    found = trace(function, ARGUMENTS)
    if not isinstance(found, Traced):
        event(f"untraceable: {found.reason}")
        return
    rows = Rows(seed)
    suspects = assert_agrees(function, rows.keys(count), rows.values(count), found.expr)
    event(f"traced, {'some' if suspects else 'no'} rows suspect")


METHODS = (*grammar.METHODS, *grammar.PREDICATES, "split()", "split(',')", "count('a')")
unicode_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15)
@given(texts=st.lists(unicode_texts, min_size=1, max_size=20))
def test_a_string_method_agrees_on_any_text(method: str, texts: list[str]) -> None:
    function = eval(f"lambda k, v: k.{method}")
    found = trace(function, ARGUMENTS)
    assert isinstance(found, Traced)
    assert_agrees(function, texts, [None] * len(texts), found.expr)


any_int = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%", "==", "<", "<="])
@pytest.mark.parametrize("operands", ["v.i {} v.m['a']", "v.f {} v.w['a']", "v.i {} v.f", "v.f {} v.i"])
@settings(max_examples=15)
@given(rows=st.lists(st.tuples(any_int, any_int, st.floats(), st.floats()), min_size=1, max_size=20))
def test_an_operator_agrees_on_any_numbers(op: str, operands: str, rows: list[tuple[int, int, float, float]]) -> None:
    function = eval(f"lambda k, v: {operands.format(op)}")
    found = trace(function, ARGUMENTS)
    assert isinstance(found, Traced)
    values = [{"i": a, "m": {"a": b}, "f": c, "w": {"a": d}} for a, b, c, d in rows]
    assert_agrees(function, ["k"] * len(rows), values, found.expr)
