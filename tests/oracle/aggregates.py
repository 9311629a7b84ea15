"""What is kept for one key, or for one key and window, by each kind of aggregate."""

from __future__ import annotations

import copy
from typing import Any

from potok.topology.nodes import Aggregation
from tests.oracle.call import attempt, call, call_aggregator
from tests.oracle.canonical import canonical
from tests.oracle.records import Item


class Kept:
    """The aggregate of one key. `take` either counts a record in or raises `UserError` and changes nothing."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.aggregation = aggregation
        self.result: Any = None

    def take(self, item: Item) -> None:
        raise NotImplementedError

    def selected(self, item: Item) -> Any:
        function = self.aggregation.function
        return item.value if function is None else call(function, item.key, item.value)


class Count(Kept):
    def take(self, item: Item) -> None:
        self.result = (self.result or 0) + 1


class Sum(Kept):
    def take(self, item: Item) -> None:
        value = self.selected(item)
        if value is not None:
            self.result = attempt(lambda: (0 if self.result is None else self.result) + value)


class Min(Kept):
    def take(self, item: Item) -> None:
        value = self.selected(item)
        if value is not None and (self.result is None or attempt(lambda: value < self.result)):
            self.result = value


class Max(Kept):
    def take(self, item: Item) -> None:
        value = self.selected(item)
        if value is not None and (self.result is None or attempt(lambda: value > self.result)):
            self.result = value


class Avg(Kept):
    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        self.total: Any = 0
        self.count = 0

    def take(self, item: Item) -> None:
        value = self.selected(item)
        if value is not None:
            self.total = attempt(lambda: self.total + value)
            self.count += 1
            self.result = self.total / self.count


class CollectList(Kept):
    def take(self, item: Item) -> None:
        self.result = [*(self.result or []), self.selected(item)]


class CountDistinct(Kept):
    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        self.result = 0
        self.seen: set[str] = set()

    def take(self, item: Item) -> None:
        value = self.selected(item)
        if value is not None:
            self.seen.add(canonical(value))
            self.result = len(self.seen)


class Latest(Kept):
    """The greatest event time wins; of equal ones, the later place. So the order of arrival does not matter."""

    rank: tuple[Any, ...] | None = None

    def take(self, item: Item) -> None:
        value = self.selected(item)
        rank = (item.at_ms, *item.place)
        if self.rank is None or self.better(rank, self.rank):
            self.rank, self.result = rank, value

    def better(self, rank: tuple[Any, ...], than: tuple[Any, ...]) -> bool:
        return rank > than


class Earliest(Latest):
    def better(self, rank: tuple[Any, ...], than: tuple[Any, ...]) -> bool:
        return rank < than


class Reduce(Kept):
    started = False

    def take(self, item: Item) -> None:
        assert self.aggregation.function is not None
        if self.started:
            # The function may change what it is given and raise after that, so it is given a copy.
            self.result = attempt(self.aggregation.function.callable, copy.deepcopy(self.result), item.value)
        else:
            self.started, self.result = True, item.value


class Fold(Kept):
    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        make = aggregation.make_initial
        self.result = make.callable() if make else copy.deepcopy(aggregation.initial)

    def take(self, item: Item) -> None:
        assert self.aggregation.function is not None
        so_far = copy.deepcopy(self.result)
        self.result = call_aggregator(self.aggregation.function, item.key, item.value, so_far)


KINDS: dict[str, type[Kept]] = {
    "count": Count,
    "sum": Sum,
    "min": Min,
    "max": Max,
    "avg": Avg,
    "collect_list": CollectList,
    "count_distinct": CountDistinct,
    "latest": Latest,
    "earliest": Earliest,
    "reduce": Reduce,
    "fold": Fold,
}


def begin(aggregation: Aggregation) -> Kept:
    return KINDS[aggregation.kind](aggregation)
