"""How each aggregate that is kept row by row takes one more record."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from potok.expressions.function import Function
from potok.kernels.call import plain
from potok.records.keys import encode_key
from potok.topology.nodes import Aggregation

Position = tuple[str, int, int]
"""Topic, partition and offset: the same after any replay."""


class Fed(NamedTuple):
    """A record as a folder takes it."""

    key: Any
    value: Any
    timestamp_ms: int
    position: Position


class Folder(ABC):
    """An aggregate of one kind: `add` gives the state after one more record, `result` what the table shows."""

    mutable = False

    def start(self) -> Any:
        return None

    @abstractmethod
    def add(self, state: Any, fed: Fed) -> Any: ...

    def result(self, state: Any) -> Any:
        return state


class Fold(Folder):
    """The user's aggregator."""

    mutable = True

    def __init__(self, aggregation: Aggregation) -> None:
        assert aggregation.function is not None
        self._call: Callable[..., Any] = aggregation.function.callable
        self._with_key = aggregation.function.arity == 3
        self._aggregation = aggregation

    def start(self) -> Any:
        make = self._aggregation.make_initial
        return make.callable() if make is not None else copy.deepcopy(self._aggregation.initial)

    def add(self, state: Any, fed: Fed) -> Any:
        if self._with_key:
            return plain(self._call(fed.key, fed.value, state))
        return plain(self._call(fed.value, state))


class Reduce(Folder):
    """The user's reducer; the state is a one-tuple, so that a first value of None is told from no value."""

    mutable = True

    def __init__(self, function: Function) -> None:
        self._call = function.callable

    def add(self, state: Any, fed: Fed) -> Any:
        return (plain(fed.value if state is None else self._call(state[0], fed.value)),)

    def result(self, state: Any) -> Any:
        return state[0]


class Sum(Folder):
    def add(self, state: Any, fed: Fed) -> Any:
        if fed.value is None:
            return state
        return fed.value if state is None else state + fed.value


class Least(Folder):
    def add(self, state: Any, fed: Fed) -> Any:
        if fed.value is None:
            return state
        return fed.value if state is None or fed.value < state else state


class Greatest(Folder):
    def add(self, state: Any, fed: Fed) -> Any:
        if fed.value is None:
            return state
        return fed.value if state is None or fed.value > state else state


class Mean(Folder):
    def start(self) -> Any:
        return (0, 0)

    def add(self, state: Any, fed: Fed) -> Any:
        return state if fed.value is None else (state[0] + fed.value, state[1] + 1)

    def result(self, state: Any) -> Any:
        return state[0] / state[1] if state[1] else None


class CollectList(Folder):
    mutable = True

    def start(self) -> Any:
        return []

    def add(self, state: Any, fed: Fed) -> Any:
        state.append(plain(fed.value))
        return state


class CountDistinct(Folder):
    """Values are told apart by their canonical bytes, so that lists and structs count too."""

    def start(self) -> Any:
        return set()

    def add(self, state: Any, fed: Fed) -> Any:
        if fed.value is not None:
            state.add(encode_key(plain(fed.value), None))
        return state

    def result(self, state: Any) -> Any:
        return len(state)


class Latest(Folder):
    """The greatest (event time, position), so that the order of arrival does not matter."""

    def add(self, state: Any, fed: Fed) -> Any:
        rank = (fed.timestamp_ms, fed.position)
        return (*rank, plain(fed.value)) if state is None or rank >= state[:2] else state

    def result(self, state: Any) -> Any:
        return state[2]


class Earliest(Folder):
    def add(self, state: Any, fed: Fed) -> Any:
        rank = (fed.timestamp_ms, fed.position)
        return (*rank, plain(fed.value)) if state is None or rank < state[:2] else state

    def result(self, state: Any) -> Any:
        return state[2]


_NAMED: dict[str, type[Folder]] = {
    "sum": Sum,
    "min": Least,
    "max": Greatest,
    "avg": Mean,
    "collect_list": CollectList,
    "count_distinct": CountDistinct,
    "latest": Latest,
    "earliest": Earliest,
}


def folder_of(aggregation: Aggregation) -> Folder:
    if aggregation.kind == "fold":
        return Fold(aggregation)
    if aggregation.kind == "reduce":
        assert aggregation.function is not None
        return Reduce(aggregation.function)
    return _NAMED[aggregation.kind]()


def shown_by(kind: str) -> Callable[[Any], Any]:
    """What a table of a kind shows of the state that its cells hold."""
    if kind == "reduce":
        return lambda state: state[0]
    folder = _NAMED.get(kind)
    return folder().result if folder is not None else lambda state: state
