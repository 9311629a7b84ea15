"""Joins of a stream: every record is kept forever, and each pair is looked for one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from potok.topology.graph import Topology
from potok.topology.nodes import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    LookupKey,
    Node,
    StreamJoin,
    TableLookup,
)
from tests.oracle.call import UserError, attempt, call
from tests.oracle.canonical import canonical
from tests.oracle.decode import row
from tests.oracle.records import Item
from tests.oracle.tables import Change, SetAside


@dataclass(frozen=True)
class Pair:
    """Two values to be joined; `item` carries the key, time and stream time of the result."""

    item: Item
    left: Any
    right: Any

    def joined(self, node: StreamJoin | TableLookup | HistoryLookup) -> Item:
        if node.function is None:
            return self.item.with_value({"left": self.left, "right": self.right})
        given = (self.left, self.right) if node.function.arity == 2 else (self.item.key, self.left, self.right)
        return self.item.with_value(attempt(node.function.callable, *map(row, given)))


class JoinedStreams:
    """All records of both sides."""

    def __init__(self, node: StreamJoin) -> None:
        self.node = node
        self.sides: tuple[list[Item], list[Item]] = ([], [])
        self.met: set[tuple[int, int]] = set()

    def take(self, index: int, item: Item) -> Iterator[Pair]:
        window = self.node.window
        if item.key is None:
            raise SetAside("no key")
        reach = window.after_ms if index == 0 else window.before_ms
        if item.at_ms + reach + window.grace_ms < item.stream_time_ms:
            raise SetAside("late")
        self.sides[index].append(item)
        mine = len(self.sides[index]) - 1
        for number, other in enumerate(self.sides[1 - index]):
            left, right = (item, other) if index == 0 else (other, item)
            near = left.at_ms - window.before_ms <= right.at_ms <= left.at_ms + window.after_ms
            if near and canonical(left.key) == canonical(right.key):
                self.met |= {(index, mine), (1 - index, number)}
                at_ms, stream_time_ms = max(left.at_ms, right.at_ms), max(left.stream_time_ms, right.stream_time_ms)
                stream_time_ms = stream_time_ms if self.node.how.value == "inner" else min(stream_time_ms, at_ms)
                yield Pair(
                    replace(left, at_ms=at_ms, stream_time_ms=stream_time_ms, headless=True), left.value, right.value
                )

    def close(self, stream_time_ms: int) -> Iterator[Pair]:
        """The records that met nobody and never will."""
        window = self.node.window
        wanted = {"inner": (), "left": (0,), "outer": (0, 1)}[self.node.how.value]
        for index in wanted:
            for number, item in enumerate(self.sides[index]):
                closes_ms = item.at_ms + window.before_ms + window.after_ms + window.grace_ms + 1
                if (index, number) not in self.met and closes_ms <= stream_time_ms:
                    values = (item.value, None) if index == 0 else (None, item.value)
                    yield Pair(replace(item, stream_time_ms=item.at_ms, headless=True), *values)


class RowsAtHand:
    """The rows of a table as its changes come in; what is joined depends on what came first."""

    def __init__(self, node: TableLookup) -> None:
        self.node = node
        self.rows: dict[str, Any] = {}

    def change(self, change: Change) -> None:
        self.rows[canonical(change.key)] = change.after

    def take(self, index: int, item: Item) -> Iterator[Pair]:
        if item.key is None and not item.home:
            raise SetAside("no key")
        found = None if item.key is None else self.rows.get(canonical(item.key))
        if found is not None or self.node.how.value == "left":
            yield Pair(at_home(item), item.value, found)

    def close(self, stream_time_ms: int) -> Iterator[Pair]:
        return iter(())


class RowsOfOld:
    """All records of the stream, and all that the table was made of."""

    def __init__(self, node: HistoryLookup) -> None:
        self.node = node
        self.waiting: list[Item] = []
        self.versions: dict[str, list[Item]] = defaultdict(list)

    def take(self, index: int, item: Item) -> Iterator[Pair]:
        if index == 1:
            history_ms = self.node.history_ms
            if item.key is not None and (history_ms is None or item.at_ms + history_ms > item.stream_time_ms):
                self.versions[canonical(item.key)].append(item)
        elif item.key is None and not item.home:
            raise SetAside("no key")
        elif self.node.grace_ms is None:
            yield from self.join(item, item.stream_time_ms)
        else:
            self.waiting.append(item)

    def instant(self, item: Item) -> int:
        """The time of a record; of a late one, the earliest that would not have been."""
        if self.node.grace_ms is None:
            return item.at_ms
        return max(item.at_ms, item.stream_time_ms - self.node.grace_ms)

    def close(self, stream_time_ms: int) -> Iterator[Pair]:
        for item in self.waiting:
            if self.instant(item) + (self.node.grace_ms or 0) < stream_time_ms:
                yield from self.join(item, self.instant(item))

    def join(self, item: Item, stream_time_ms: int) -> Iterator[Pair]:
        found = None if item.key is None else self.as_of(canonical(item.key), self.instant(item))
        if found is not None or self.node.how.value == "left":
            yield Pair(replace(at_home(item), stream_time_ms=stream_time_ms), item.value, found)

    def as_of(self, key: str, at_ms: int) -> Any:
        seen = [version for version in self.versions[key] if self.instant(version) <= at_ms]
        best = max(seen, key=lambda version: (self.instant(version), version.at_ms, *version.place), default=None)
        return None if best is None else best.value


def at_home(item: Item) -> Item:
    return replace(item, key=item.home[0], home=()) if item.home else item


Join = JoinedStreams | RowsAtHand | RowsOfOld


def joins_of(topology: Topology) -> dict[Node, Join]:
    joins: dict[Node, Join] = {node: JoinedStreams(node) for node in topology.of_type(StreamJoin)}
    joins |= {node: RowsAtHand(node) for node in topology.of_type(TableLookup)}
    return joins | {node: RowsOfOld(node) for node in topology.of_type(HistoryLookup)}


def way_to_join(node: Node, item: Item) -> Item | None:
    """What the steps that lead to a join make of a record; None if this is none of them."""
    if isinstance(node, LookupKey):
        return replace(item.with_key(call(node.function, item.key, item.value)), home=(item.key,))
    if isinstance(node, HistoryFilter | HistoryMapValues):
        return item.with_value(_row(node, item))
    return None


def _row(node: HistoryFilter | HistoryMapValues, item: Item) -> Any:
    if item.value is None:
        return None
    try:
        if isinstance(node, HistoryMapValues):
            return call(node.function, item.key, item.value)
        return item.value if bool(call(node.predicate, item.key, item.value)) is not node.negate else None
    except UserError:
        return None
