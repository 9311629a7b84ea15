"""Functions for lambdas: called with a plain value they compute, with a traced one they become part of the
expression.

So a lambda that uses them has the same result whether it runs natively or as Python.

>>> from potok import functions as f
>>> orders.filter(lambda v: f.isin(v["status"], ["NEW", "PAID"]))
>>> orders.map_values(lambda v: {**v, "size": f.when(v["amount"] > 100, "large", "small")})
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from potok.expressions.tracing.proxy import Proxy, traced_call
from potok.expressions.tracing.recorder import Recorder
from potok.expressions.tracing.refusal import NotTraceable

__all__ = [
    "absolute",
    "between",
    "coalesce",
    "concat",
    "contains",
    "greatest",
    "is_null",
    "isin",
    "least",
    "length",
    "lower",
    "not_",
    "upper",
    "when",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def is_null(x: Any) -> Any:
    """`x is None`."""
    recorder = _recorder(x)
    return x is None if recorder is None else traced_call("is_null", recorder, (x,))


def not_(x: Any) -> Any:
    """`not x`: true for False, None, zero, and empty values."""
    recorder = _recorder(x)
    return not x if recorder is None else traced_call("not_", recorder, (x,))


def when(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then if condition else otherwise`, except that both are computed first, like all arguments."""
    recorder = _recorder(condition)
    if recorder is None:
        return then if condition else otherwise
    return traced_call("when", recorder, (condition, then, otherwise))


def coalesce(x: Any, *others: Any) -> Any:
    """Return the first argument that is not None, or None."""
    recorder = _recorder(x, *others)
    if recorder is None:
        return next((value for value in (x, *others) if value is not None), None)
    return traced_call("coalesce", recorder, (x, *others))


def isin(x: Any, values: Collection[Any]) -> Any:
    """`x in values`."""
    recorder = _recorder(x)
    if recorder is None:
        return x in values
    if type(values) not in (list, tuple, set, frozenset):
        raise NotTraceable("isin is traced only for a list, a tuple or a set")
    return traced_call("isin", recorder, (x,), (tuple(values),))


def between(x: Any, low: Any, high: Any) -> Any:
    """`low <= x <= high`, both ends inclusive."""
    return (low <= x) & (x <= high)


def contains(container: Any, part: Any) -> Any:
    """`part in container`: a substring of a text, an element of a list."""
    recorder = _recorder(container)
    return part in container if recorder is None else traced_call("contains", recorder, (container,), (part,))


def length(x: Any) -> Any:
    """`len(x)` of a string (in characters), of bytes, or of a list."""
    recorder = _recorder(x)
    return len(x) if recorder is None else traced_call("length", recorder, (x,))


def absolute(x: Any) -> Any:
    """`abs(x)`."""
    recorder = _recorder(x)
    return abs(x) if recorder is None else traced_call("absolute", recorder, (x,))


def lower(x: Any) -> Any:
    """`x.lower()`."""
    return x.lower()


def upper(x: Any) -> Any:
    """`x.upper()`."""
    return x.upper()


def concat(first: Any, *others: Any) -> Any:
    """Concatenate texts; each must be a string."""
    recorder = _recorder(first, *others)
    return "".join((first, *others)) if recorder is None else traced_call("concat", recorder, (first, *others))


def least(x: Any, *others: Any) -> Any:
    """Return the least of the arguments. None and NaN lose against any other value, so the order never matters.

    As `least(agg, x)` in an aggregator it is a minimum that Potok computes natively, and None is a valid
    initial value.
    """
    recorder = _recorder(x, *others)
    return _extreme(min, (x, *others)) if recorder is None else traced_call("least", recorder, (x, *others))


def greatest(x: Any, *others: Any) -> Any:
    """Return the greatest of the arguments. None and NaN lose against any other value, so the order never
    matters.
    """
    recorder = _recorder(x, *others)
    return _extreme(max, (x, *others)) if recorder is None else traced_call("greatest", recorder, (x, *others))


def _extreme(choose: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    present = [value for value in values if value is not None]
    numbers = [value for value in present if value == value]
    if numbers:
        return choose(numbers)
    return present[0] if present else None


def _recorder(*values: object) -> Recorder | None:
    """Return the current trace, if any of the values belongs to one."""
    for value in values:
        if type(value) is Proxy:
            return value.__potok_recorder__
        if isinstance(value, list | tuple | dict):
            inner = _recorder(*(value.values() if isinstance(value, dict) else value))
            if inner is not None:
                return inner
    return None


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
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
}
"""The functions that a traced lambda may call."""
