"""What a function does with its arguments, as far as its bytecode tells."""

from __future__ import annotations

from typing import Any

import pytest

from potok.operators.core.function_usage import fields_read, only_looks_up, uses_no_attributes

LIMIT = 5
WANTED = ["a", "b"]
PRICES = {"a": 1}


def change(v: Any) -> Any:
    v["n"] = 1
    return v


def remove(v: Any) -> Any:
    del v["n"]
    return v


@pytest.mark.parametrize(
    "function", [lambda v: v["n"] + 1, lambda k, v: {**v, "k": k}, lambda v: len(v["s"]) > LIMIT, lambda v: v]
)
def test_items_operators_and_harmless_builtins_look_only(function: Any) -> None:
    assert only_looks_up(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v.n,
        lambda v: v["s"].upper(),
        lambda v: vars(v),
        lambda v: [x.n for x in v["all"]],
        lambda v, w=None: v,
        len,
    ],
)
def test_whatever_may_ask_for_attributes_does_not(function: Any) -> None:
    assert not uses_no_attributes(function)


def extend(v: Any) -> Any:
    v += [1]
    return v


def merge(v: Any) -> Any:
    v |= {"n": 1}
    return v


@pytest.mark.parametrize("function", [change, remove, extend, merge])
def test_a_function_that_changes_its_argument_does_not_only_look(function: Any) -> None:
    assert not only_looks_up(function)


@pytest.mark.parametrize("function", [lambda v: v["n"] in WANTED, lambda v: PRICES[v["n"]]])
def test_a_global_that_cannot_be_hashed_is_accepted(function: Any) -> None:
    assert not only_looks_up(function)


def nothing(v: Any) -> None:
    """Does not look at its argument."""


@pytest.mark.parametrize(
    ("function", "fields"), [(nothing, set()), (lambda v: v["a"] + v["b"], {"a", "b"}), (lambda v: v["a"]["b"], {"a"})]
)
def test_the_fields_that_are_read_are_reported(function: Any, fields: set[str]) -> None:
    assert fields_read(function, 0) == fields


@pytest.mark.parametrize(
    "function",
    [lambda v: v, lambda v: v.a, lambda v: {**v}, lambda v: locals(), lambda v: eval("v"), lambda v: lambda: v["a"]],
)
def test_a_function_that_may_see_more_than_some_fields_is_given_all(function: Any) -> None:
    assert fields_read(function, 0) is None


def test_what_is_called_may_be_an_object_that_cannot_be_remembered() -> None:
    class Remembers(dict[str, int]):
        def __call__(self, value: object) -> bool:
            return value in self

    found = Remembers()
    assert (uses_no_attributes(found), only_looks_up(found), fields_read(found, 0)) == (False, False, None)
