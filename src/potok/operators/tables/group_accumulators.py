"""How the aggregate of a group of rows adds and removes a row."""

from __future__ import annotations

import copy
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pyarrow as pa

from potok.expressions.function import Function
from potok.operators.core.call import plain
from potok.records.keys import UnusableKeyError, encode_key
from potok.records.rows import converter_of
from potok.topology.inference.step import arrow_of
from potok.topology.nodes import Aggregation


class GroupAccumulator(ABC):
    """An aggregate of one kind. Rows can be removed in any order; the result does not depend on it."""

    @abstractmethod
    def start(self) -> Any: ...

    @abstractmethod
    def add(self, state: Any, key: Any, value: Any) -> Any: ...

    @abstractmethod
    def subtract(self, state: Any, key: Any, value: Any) -> Any: ...

    def stored(self, state: Any) -> Any:
        """Return the state as serializable data."""
        return state

    def result(self, state: Any) -> Any:
        return state


class Count(GroupAccumulator):
    """The rows are counted by the group itself; see `Group`."""

    def start(self) -> Any:
        return 0

    def add(self, state: Any, key: Any, value: Any) -> Any:
        return state + 1

    def subtract(self, state: Any, key: Any, value: Any) -> Any:
        return state - 1


class Sum(GroupAccumulator):
    """(count, count of floats, their exact sum, count of each non-finite value).

    Floats are added as fractions, so that removing a number subtracts exactly what it added, and infinities and NaN
    are counted, so that they can be removed at all.
    """

    def start(self) -> Any:
        return (0, 0, 0, {})

    def add(self, state: Any, key: Any, value: Any) -> Any:
        return self._move(state, value, 1)

    def subtract(self, state: Any, key: Any, value: Any) -> Any:
        return self._move(state, value, -1)

    def _move(self, state: Any, value: Any, sign: int) -> Any:
        if value is None:
            return state
        count, floats, total, odd = state
        if isinstance(value, float):
            if not math.isfinite(value):
                return count + sign, floats + sign, total, _counted(odd, repr(value), sign)
            return count + sign, floats + sign, total + sign * Fraction(value), odd
        return count + sign, floats, total + sign * value, odd

    def result(self, state: Any) -> Any:
        count, floats, total, odd = state
        if not count:
            return None
        if odd:
            return sum(float(text) for text in odd)
        return _float(total) if floats else _whole(total)


class Mean(Sum):
    def result(self, state: Any) -> Any:
        count, floats, total, odd = state
        if not count or odd:
            return super().result(state)
        return _float(Fraction(total) / count) if floats else _whole(total) / count


def _counted(counts: dict[Any, int], name: Any, sign: int) -> dict[Any, int]:
    changed = {**counts, name: counts.get(name, 0) + sign}
    return {name: count for name, count in changed.items() if count}


def _float(total: Any) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _whole(total: Any) -> Any:
    """Return a sum without its floats, which leave a fraction behind."""
    return int(total) if isinstance(total, Fraction) else total


class Bag(GroupAccumulator):
    """All values of the group with their counts, by their canonical bytes."""

    takes_nulls = False

    def __init__(self, show: Callable[[Iterable[tuple[Any, int]]], Any]) -> None:
        self._show = show

    def start(self) -> Any:
        return {}

    def add(self, state: Any, key: Any, value: Any) -> Any:
        return self._move(state, value, 1)

    def subtract(self, state: Any, key: Any, value: Any) -> Any:
        return self._move(state, value, -1)

    def _move(self, state: Any, value: Any, sign: int) -> Any:
        if value is not None or self.takes_nulls:
            value = plain(value)
            name = identity(value)
            held, count = state.get(name, (value, 0))
            state[name] = (held, count + sign)
            if not count + sign:
                del state[name]
        return state

    def result(self, state: Any) -> Any:
        return self._show(state[name] for name in sorted(state))


class CollectList(Bag):
    takes_nulls = True


def identity(value: Any) -> bytes:
    """Return the bytes that identify a value; one that cannot be a key, or is not a number for JSON, is identified by
    its text. The memory address is not used: the removed value is another object.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value).encode()
    try:
        return encode_key(plain(value), None) or b""
    except UnusableKeyError:
        return _ADDRESS.sub("", _text(value)).encode(errors="replace")


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _text(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - an object of the user's own may raise anything
        return type(value).__qualname__


def in_order(values: list[Any]) -> list[Any]:
    """Sort values; where they cannot be compared, type by type, and nulls at the end."""
    there = [value for value in values if value is not None]
    try:
        if any(value != value for value in there):
            raise TypeError("a value that is not a number cannot be ordered")
        there.sort()
    except TypeError:
        there.sort(key=lambda value: (type(value).__name__, identity(value)))
    return there + [None] * (len(values) - len(there))


def _numbers(counts: Iterable[tuple[Any, int]]) -> list[Any]:
    values = in_order([value for value, _ in counts])
    return [value for value in values if value == value] or values[:1]


def _least(counts: Iterable[tuple[Any, int]]) -> Any:
    return next(iter(_numbers(counts)), None)


def _greatest(counts: Iterable[tuple[Any, int]]) -> Any:
    return next(iter(_numbers(counts)[::-1]), None)


def _list(counts: Iterable[tuple[Any, int]]) -> list[Any]:
    return in_order([value for value, count in counts for _ in range(count)])


class Fold(GroupAccumulator):
    """The user's adder and subtractor, from the user's initial value."""

    def __init__(self, aggregation: Aggregation, subtractor: Function) -> None:
        assert aggregation.function is not None
        self._aggregation, self._adder, self._subtractor = aggregation, aggregation.function, subtractor
        self._as_seen = converter_of(arrow_of(aggregation.schema))

    def start(self) -> Any:
        make = self._aggregation.make_initial
        return make.callable() if make is not None else copy.deepcopy(self._aggregation.initial)

    def add(self, state: Any, key: Any, value: Any) -> Any:
        return self._call(self._adder, key, value, state)

    def subtract(self, state: Any, key: Any, value: Any) -> Any:
        return self._call(self._subtractor, key, value, state)

    def stored(self, state: Any) -> Any:
        return plain(state)

    def _call(self, function: Function, key: Any, value: Any, state: Any) -> Any:
        seen = self._as_seen(state)
        return function.callable(*((value, seen) if function.arity == 2 else (key, value, seen)))


class Reduce(GroupAccumulator):
    """The user's adder and subtractor of two values; the state is a one-tuple, which distinguishes a value of None
    from no value.
    """

    def __init__(self, adder: Function, subtractor: Function, value_type: pa.DataType | None) -> None:
        self._adder, self._subtractor = adder.callable, subtractor.callable
        self._as_seen = converter_of(value_type)

    def start(self) -> Any:
        return ()

    def add(self, state: Any, key: Any, value: Any) -> Any:
        # The first value becomes the state: an adder that changes it must not change the row.
        return (self._adder(self._as_seen(state[0]), value),) if state else (copy.deepcopy(value),)

    def subtract(self, state: Any, key: Any, value: Any) -> Any:
        return (self._subtractor(self._as_seen(state[0]), value),) if state else state

    def stored(self, state: Any) -> Any:
        return tuple(map(plain, state))

    def result(self, state: Any) -> Any:
        return state[0] if state else None


def group_accumulator_of(
    aggregation: Aggregation, subtractor: Function | None, value_type: pa.DataType | None = None
) -> GroupAccumulator:
    if aggregation.kind in ("fold", "reduce"):
        assert aggregation.function is not None
        assert subtractor is not None
        if aggregation.kind == "fold":
            return Fold(aggregation, subtractor)
        return Reduce(aggregation.function, subtractor, value_type)
    return _NAMED[aggregation.kind]()


_NAMED: dict[str, Callable[[], GroupAccumulator]] = {
    "count": Count,
    "sum": Sum,
    "avg": Mean,
    "min": lambda: Bag(_least),
    "max": lambda: Bag(_greatest),
    "count_distinct": lambda: Bag(lambda counts: sum(1 for _ in counts)),
    "collect_list": lambda: CollectList(_list),
}
