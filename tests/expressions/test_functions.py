"""Potok's functions on plain values; that they agree with their traced form is tested beside the operators."""

from __future__ import annotations

import math

import pytest

from potok.expressions.functions import (
    absolute,
    between,
    coalesce,
    concat,
    contains,
    greatest,
    is_null,
    isin,
    least,
    length,
    lower,
    not_,
    upper,
    when,
)


def test_choices() -> None:
    assert when([], 1, 2) == 2
    assert when("a", 1, 2) == 1
    assert coalesce(None, None, 0, 1) == 0
    assert coalesce(None) is None
    assert is_null(None) is True
    assert is_null(0) is False
    assert not_("") is True


def test_membership() -> None:
    assert isin(1, {1, 2}) is True
    assert isin("b", "abc") is True
    assert contains("abc", "b") is True
    assert contains([1, 2], 3) is False
    assert between(5, 5, 6) is True
    assert between(4.9, 5, 6) is False


def test_texts_and_sizes() -> None:
    assert concat("a", "b", "c") == "abc"
    assert length("é") == 1
    assert length([1]) == 1
    assert lower("A") + upper("b") == "aB"
    assert absolute(-3) == 3


def test_concat_of_anything_but_texts_raises() -> None:
    for parts in ((1, 2), ("a", None), (None,)):
        with pytest.raises(TypeError):
            concat(*parts)


def test_least_and_greatest_pass_over_what_is_missing() -> None:
    assert least(3, None, 1.5) == 1.5
    assert greatest(None, "a", "b") == "b"
    assert least(None, None) is None
    assert least(math.nan, 3.0) == greatest(3.0, math.nan) == 3.0
    assert math.isnan(least(None, math.nan))


def test_the_order_of_arguments_never_matters_to_least_and_greatest() -> None:
    for values in ((1.0, math.nan), (None, 2.0), (math.nan, None)):
        assert repr(least(*values)) == repr(least(*reversed(values)))
        assert repr(greatest(*values)) == repr(greatest(*reversed(values)))
