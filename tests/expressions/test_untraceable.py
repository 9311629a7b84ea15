"""Each construct that must not be traced, because a stand-in would not notice it or would lie about it."""

from __future__ import annotations

from typing import Any

import pytest

from expressions import constructs
from expressions.agreement import ARGUMENTS, VALUE
from potok.expressions import Argument, Untraceable, functions, trace


@pytest.mark.parametrize("construct", constructs.CONSTRUCTS)
def test_is_not_traced(construct: str) -> None:
    function, fragment = constructs.CONSTRUCTS[construct]
    found = trace(function, ARGUMENTS)
    assert isinstance(found, Untraceable), found
    assert fragment in found.reason


def test_a_lambda_that_is_refused_by_its_bytecode_is_never_called() -> None:
    trace(constructs.counting, ARGUMENTS)
    assert constructs.counter == 0


def test_an_expression_that_doubles_again_and_again_is_refused() -> None:
    def doubling(k: Any, v: Any) -> Any:
        x = v.i
        x = x + x
        x = x + x
        x = x + x
        x = x + x
        x = x + x
        x = x + x
        x = x + x
        x = x + x
        return x + x

    found = trace(doubling, ARGUMENTS)
    assert isinstance(found, Untraceable)
    assert "parts" in found.reason


def test_an_argument_without_a_type_cannot_be_used() -> None:
    untyped = (Argument("key", None), Argument("value", VALUE))
    uses = (
        lambda k, v: k,
        lambda k, v: k + "x",
        lambda k, v: k["a"],
        lambda k, v: k.a,
        lambda k, v: k == None,  # noqa: E711
    )
    for function in uses:
        found = trace(function, untyped)
        assert isinstance(found, Untraceable)
        assert "no declared type" in found.reason


def test_every_function_is_named_in_the_module_that_users_import() -> None:
    assert all(getattr(functions, name) is function for name, function in functions.FUNCTIONS.items())
