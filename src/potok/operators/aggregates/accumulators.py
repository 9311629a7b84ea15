"""How each row-by-row aggregate adds a record."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import length_hint
from typing import Any

import pyarrow as pa

from potok.expressions.function import Function
from potok.operators.core.call import plain
from potok.operators.core.function_usage import only_looks_up, uses_no_attributes
from potok.records.keys import encode_key
from potok.records.rows import converter_of
from potok.topology.inference.step import arrow_of
from potok.topology.nodes import Aggregation

Rank = tuple[int, tuple[str, int, int]]
"""Event time, and the position as topic, partition and offset: the same after any replay."""


class Accumulator(ABC):
    """An aggregate of one kind: `add` returns the state after another record, `result` what the table shows.

    `mutable` accumulators may change the state they are given; `ranked` ones use the rank of a record, which is None
    for the others; those not `wrapped` take dicts as they are.
    """

    mutable = False
    ranked = False
    wrapped = True

    def start(self) -> Any:
        return None

    @abstractmethod
    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any: ...

    def add_all(
        self, states: list[Any], ids: list[int], keys: list[Any], values: list[Any], ranks: Sequence[Rank | None]
    ) -> int:
        """Add each record to the state with its number, in order; return how many succeeded before one failed."""
        row, add = 0, self.add
        try:
            for row, (i, value, rank) in enumerate(zip(ids, values, ranks, strict=True)):  # noqa: B007 - see below
                states[i] = add(states[i], keys[i], value, rank)
        except Exception:  # noqa: BLE001 - the user's function may raise anything; it is asked again, one by one
            return row
        return len(ids)

    def stored(self, state: Any) -> Any:
        """Return the state as serializable data."""
        return plain(state)

    def result(self, state: Any) -> Any:
        return state


class Fold(Accumulator):
    """The user's aggregator."""

    def __init__(self, aggregation: Aggregation) -> None:
        assert aggregation.function is not None
        self._call: Callable[..., Any] = aggregation.function.callable
        self._with_key = aggregation.function.arity == 3
        self.wrapped = not uses_no_attributes(self._call)
        self.mutable = not only_looks_up(self._call)
        self._aggregation = aggregation
        self._as_seen = converter_of(arrow_of(aggregation.schema))

    def start(self) -> Any:
        make = self._aggregation.make_initial
        return make.callable() if make is not None else copy.deepcopy(self._aggregation.initial)

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if self.wrapped and type(state) is dict:
            state = self._as_seen(state)
        return self._call(key, value, state) if self._with_key else self._call(value, state)

    def add_all(
        self, states: list[Any], ids: list[int], keys: list[Any], values: list[Any], ranks: Sequence[Rank | None]
    ) -> int:
        if self.wrapped or not self._with_key:
            return super().add_all(states, ids, keys, values, ranks)
        call, rest = self._call, iter(ids)
        try:
            for i, value in zip(rest, values, strict=True):
                states[i] = call(keys[i], value, states[i])
        except Exception:  # noqa: BLE001
            return len(ids) - length_hint(rest) - 1
        return len(ids)


class Reduce(Accumulator):
    """The user's reducer; the state is a one-tuple, which distinguishes a first value of None from no value."""

    def __init__(self, function: Function, value_type: pa.DataType | None = None) -> None:
        self._call, self._as_seen = function.callable, converter_of(value_type)
        self._looks_only = only_looks_up(self._call)
        self.wrapped, self.mutable = not uses_no_attributes(self._call), not self._looks_only

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if state is None:
            # The first value becomes the state: a reducer that changes it must not change the record.
            return (value if self._looks_only else copy.deepcopy(value),)
        left = self._as_seen(state[0]) if self.wrapped else state[0]
        return (self._call(left, value),)

    def stored(self, state: Any) -> Any:
        return [plain(state[0])]

    def result(self, state: Any) -> Any:
        return state[0]


class Count(Accumulator):
    """Counts that are taken record by record; others are merged as columns."""

    def start(self) -> Any:
        return 0

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        return state + 1


class Sum(Accumulator):
    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if value is None:
            return state
        return 0 + value if state is None else state + value


class Least(Accumulator):
    """Null and NaN are ordered after any number, so that the order of records does not matter."""

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if value is None:
            return state
        return value if state is None or state != state or value < state else state


class Greatest(Accumulator):
    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if value is None:
            return state
        return value if state is None or state != state or value > state else state


class Mean(Accumulator):
    def start(self) -> Any:
        return (0, 0)

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        return state if value is None else (state[0] + value, state[1] + 1)

    def result(self, state: Any) -> Any:
        return state[0] / state[1] if state[1] else None


class CollectList(Accumulator):
    mutable = True

    def start(self) -> Any:
        return []

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        state.append(plain(value))
        return state


class CountDistinct(Accumulator):
    """Values are identified by their canonical bytes, so that lists and structs count too."""

    def start(self) -> Any:
        return set()

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        if value is not None:
            state.add(encode_key(plain(value), None))
        return state

    def result(self, state: Any) -> Any:
        return len(state)


class Latest(Accumulator):
    """The greatest event time and position, so that the order of arrival does not matter. The state holds them before
    the value: time, topic, partition and offset.
    """

    ranked = True

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        assert rank is not None
        flat = (rank[0], *rank[1])
        return (*flat, plain(value)) if state is None or flat >= state[:4] else state

    def result(self, state: Any) -> Any:
        return state[4]


class Earliest(Accumulator):
    ranked = True

    def add(self, state: Any, key: Any, value: Any, rank: Rank | None) -> Any:
        assert rank is not None
        flat = (rank[0], *rank[1])
        return (*flat, plain(value)) if state is None or flat < state[:4] else state

    def result(self, state: Any) -> Any:
        return state[4]


_NAMED: dict[str, type[Accumulator]] = {
    "count": Count,
    "sum": Sum,
    "min": Least,
    "max": Greatest,
    "avg": Mean,
    "collect_list": CollectList,
    "count_distinct": CountDistinct,
    "latest": Latest,
    "earliest": Earliest,
}


def accumulator_of(aggregation: Aggregation, value_type: pa.DataType | None = None) -> Accumulator:
    if aggregation.kind == "fold":
        return Fold(aggregation)
    if aggregation.kind == "reduce":
        assert aggregation.function is not None
        return Reduce(aggregation.function, value_type)
    return _NAMED[aggregation.kind]()


def result_of(kind: str) -> Callable[[Any], Any]:
    """Return what a table of a kind shows of the state of its cells."""
    if kind == "reduce":
        return lambda state: state[0]
    accumulator = Latest if kind == "by_time" else _NAMED.get(kind)
    return accumulator().result if accumulator is not None else lambda state: state
