"""Tables of several queries as of one instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from potok.log.broker import Broker
from potok.views.cut import Cut, with_cuts
from potok.views.tables import Tables, committed

T = TypeVar("T")


class HeldTables(Tables):
    """Tables that stay as they are in one cut, for as long as somebody holds it."""

    def __init__(self, broker: Broker, query: str, cut: Cut) -> None:
        super().__init__(broker, query)
        self._cut = cut

    def read(self, work: Callable[[Cut], T]) -> T:
        return work(self._cut)


def read_together(broker: Broker, queries: Iterable[str], work: Callable[[Mapping[str, Tables]], T]) -> T:
    """Run `work` on the tables of several queries, all as of one instant; queries that share their batches are all at
    the same one. It may run more than once, and what it was given is of no use afterwards.

    >>> read_together(broker, ["sold", "returned"], lambda by: [by[name]["total"].get(7) for name in by])
    """
    names = list(dict.fromkeys(queries))
    looks = [partial(committed, broker, name) for name in names]

    def on_cuts(cuts: list[Cut]) -> T:
        return work({name: HeldTables(broker, name, cut) for name, cut in zip(names, cuts, strict=True)})

    return with_cuts(looks, on_cuts)
