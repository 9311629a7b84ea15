"""Calling the user's functions as the DSL promises to: with key and value, or with the value alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.expressions.function import Function
from tests.oracle.decode import row


class UserError(Exception):
    """The user's function raised, or returned what its step cannot take."""


def call(function: Function, key: Any, value: Any) -> Any:
    given = (value,) if function.arity == 1 else (key, value)
    return attempt(function.callable, *map(row, given))


def call_aggregator(function: Function, key: Any, value: Any, so_far: Any) -> Any:
    given = (value, so_far) if function.arity == 2 else (key, value, so_far)
    return attempt(function.callable, *map(row, given))


def attempt(function: Callable[..., Any], *given: Any) -> Any:
    """Everything that runs the user's code goes through here, so that a fault of the oracle is never taken for his."""
    try:
        return function(*given)
    except Exception as error:
        raise UserError(f"{type(error).__name__}: {error}") from error
