from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from potok.errors import Location, TopologyError
from potok.expressions import Function, WrongArity
from potok.expressions.function import JOINER


class Doubling:
    def __call__(self, value: int) -> int:
        return value * 2

    def method(self, key: str, value: int) -> int:
        return value


def documented(v: Any) -> Any:
    """A function of several lines."""
    return v


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@pytest.mark.parametrize(
    ("function", "allowed", "arity"),
    [
        (lambda v: v, (1, 2), 1),
        (lambda k, v: v, (1, 2), 2),
        (lambda v, limit=5: v, (1, 2), 1),
        (lambda v, *, limit=5: v, (1, 2), 1),
        (lambda k=None, v=None: v, (1, 2), 2),
        (lambda *args: args, (1, 2), 2),
        (lambda k, v, agg: agg, (2, 3), 3),
        (lambda v, agg: agg, (2, 3), 2),
        (Doubling(), (1, 2), 1),
        (Doubling().method, (1, 2), 2),
        (functools.partial(lambda limit, v: v, 5), (1, 2), 1),
        (wrapped(documented), (1, 2), 1),
        (len, (1, 2), 1),
        (str, (1, 2), 1),
        (print, (1, 2), 2),
        (str.upper, (1, 2), 1),
    ],
)
def test_the_arity_is_the_number_of_arguments_that_the_function_needs(
    function: Callable[..., Any], allowed: tuple[int, ...], arity: int
) -> None:
    assert Function.of(function, allowed).arity == arity


@pytest.mark.parametrize("function", [lambda: 1, lambda a, b, c: a, lambda v, *, must: v])
def test_an_uncallable_function_is_refused_with_its_location(function: Callable[..., Any]) -> None:
    with pytest.raises(WrongArity) as caught:
        Function.of(function, (1, 2))
    assert "lambda k, v" in caught.value.hint
    assert caught.value.at is not None
    assert caught.value.at.file == __file__


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(TopologyError, match="not a function"):
        Function.of("amount", (1, 2))  # type: ignore[arg-type]


def test_a_function_knows_its_location_and_its_text() -> None:
    first, second = Function.of(lambda v: v["a"] > 1, (1,)), Function.of(lambda k, v: v + k, (2,))
    assert first.source == 'lambda v: v["a"] > 1'
    assert second.source == "lambda k, v: v + k"
    assert first.location is not None
    assert first.location.line == test_a_function_knows_its_location_and_its_text.__code__.co_firstlineno + 1
    assert Function.of(documented, (1,)).source.startswith("def documented")
    assert Function.of(len, (1,)).source == ""


def test_the_text_of_a_lambda_in_a_lambda_is_its_own() -> None:
    outer = lambda v: lambda w: w + 1
    assert Function.of(outer(0), (1,)).source == "lambda w: w + 1"
    assert Function.of(outer, (1,)).source == "lambda v: lambda w: w + 1"


def test_a_function_is_equal_only_to_itself_and_survives_the_journey() -> None:
    def function(v: int) -> int:
        return v + 1

    one, other = Function.of(function, (1,)), Function.of(function, (1,))
    assert one != other
    assert len({one, other}) == 2
    copy = cloudpickle.loads(cloudpickle.dumps(one))
    assert copy(1) == one(1) == 2
    assert (copy.arity, copy.location, copy.name) == (one.arity, one.location, one.name)


def test_a_step_in_a_loop_keeps_the_variable_of_its_own_turn() -> None:
    steps = [Function.of(lambda v: (v, region), (1,)) for region in ("north", "south")]
    assert [step(1) for step in steps] == [(1, "north"), (1, "south")]


def test_what_is_closed_over_and_can_change_is_shared_as_it_was() -> None:
    seen: list[int] = []
    Function.of(lambda v: seen.append(v), (1,))(5)
    assert seen == [5]


def test_a_function_that_counts_in_an_outer_variable_continues_counting() -> None:
    count = 0

    def counting(v: int) -> int:
        nonlocal count
        count += 1
        return v

    Function.of(counting, (1,))(1)
    assert count == 1


@pytest.mark.parametrize(
    ("function", "allowed", "hint"),
    [
        (lambda v: v, (2, 3), "write lambda v, agg: ... or lambda k, v, agg: ..."),
        (lambda v: v, (0,), "write lambda: ..."),
        (lambda: 0, (1, 2), "write lambda v: ... or lambda k, v: ..."),
    ],
)
def test_a_wrong_number_of_arguments_is_answered_with_a_right_one(
    function: Callable[..., Any], allowed: tuple[int, ...], hint: str
) -> None:
    with pytest.raises(WrongArity) as caught:
        Function.of(function, allowed)
    assert caught.value.hint == hint
    assert caught.value.at == Location(__file__, function.__code__.co_firstlineno)


def test_an_argument_that_is_not_a_function_is_reported_with_the_line_of_the_call() -> None:
    given: Any = "amount > 100"
    with pytest.raises(TopologyError, match="'amount > 100' is not a function") as caught:
        Function.of(given, (1, 2))
    assert caught.value.at is not None
    assert caught.value.at.file == __file__


def test_the_hint_of_the_caller_has_priority() -> None:
    with pytest.raises(WrongArity) as caught:
        Function.of(lambda v: v, (2, 3), JOINER)
    assert caught.value.hint == JOINER
