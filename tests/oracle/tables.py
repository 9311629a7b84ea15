"""Steps that keep rows: what one record changes in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from potok.topology.nodes import (
    Aggregate,
    FlatMap,
    HistoryLookup,
    Hopping,
    Map,
    Merge,
    Node,
    Ordered,
    Process,
    SelectKey,
    StreamJoin,
    StreamSource,
    TableLookup,
    TableSource,
    ToStream,
    Tumbling,
    Window,
)
from tests.oracle.aggregates import Kept, begin
from tests.oracle.call import UserError
from tests.oracle.canonical import canonical, windowed_key
from tests.oracle.records import Item


class SetAside(Exception):
    """This record cannot enter the table; the reason is the message."""


@dataclass(frozen=True)
class Change:
    """One row of a table before and after; null is not a row. `item` is the record that caused it, or was the last.

    `dropped` says that no record caused it: the row is a window that is over.
    """

    key: Any
    before: Any
    after: Any
    item: Item
    dropped: bool = False


@dataclass
class Entry:
    key: Any
    kept: Kept
    last: Item
    end_ms: int = 0


class AggregateRows:
    """The rows of an aggregate."""

    def __init__(self, node: Aggregate) -> None:
        self.node = node
        self.entries: dict[str, Entry] = {}

    def take(self, item: Item) -> Iterator[Change | SetAside]:
        """What a record changes; a record that misses a window, or fails in one, is set aside besides."""
        if item.key is None:
            raise SetAside("no key")
        if self.node.window is None:
            yield self.add(item, item.key, 0)
            return
        failed: UserError | None = None
        for start_ms, end_ms in windows_of(self.node.window, item.at_ms):
            if end_ms + self.node.window.grace_ms <= item.stream_time_ms:
                yield SetAside("late")
                continue
            try:
                yield self.add(item, windowed_key(item.key, start_ms, end_ms), end_ms)
            except UserError as error:
                failed = error
        if failed is not None:
            raise failed

    def add(self, item: Item, key: Any, end_ms: int) -> Change:
        found = self.entries.get(canonical(key))
        entry = found or Entry(key, begin(self.node.aggregation), item, end_ms)
        before = found.kept.result if found else None
        entry.kept.take(item)
        # A row stands at the greatest time of its records, and a change of it comes from no place of its own.
        entry.last = replace(item, at_ms=max(item.at_ms, entry.last.at_ms), of_change=True)
        self.entries[canonical(key)] = entry
        return Change(key, before, entry.kept.result, entry.last)

    def close(self, stream_time_ms: int) -> list[Change]:
        """Drop the windows whose retention has passed."""
        window = self.node.window
        if window is None:
            return []
        past = {text: e for text, e in self.entries.items() if e.end_ms + window.retention_ms <= stream_time_ms}
        for text in past:
            del self.entries[text]
        return [Change(entry.key, entry.kept.result, None, entry.last, dropped=True) for entry in past.values()]

    def rows(self) -> dict[str, Any]:
        return {text: entry.kept.result for text, entry in self.entries.items()}


def windows_of(window: Window, at_ms: int) -> Iterator[tuple[int, int]]:
    """Start and end of each window that holds an instant."""
    assert isinstance(window, Tumbling | Hopping)
    advance_ms = window.advance_ms
    start_ms = (at_ms - window.size_ms) // advance_ms * advance_ms
    while start_ms <= at_ms:
        before_1970 = start_ms < 0 <= at_ms
        if at_ms < start_ms + window.size_ms and not before_1970:
            yield start_ms, start_ms + window.size_ms
        start_ms += advance_ms


class LatestRows:
    """The rows of a table source or of `to_table`: the last value of each key, where null deletes.

    Where a step has changed the key, records of one key come from several partitions; then the last is the one with
    the greatest event time (of equal ones, the greatest position), also among the deletes.
    """

    def __init__(self, by_event_time: bool) -> None:
        self.by_event_time = by_event_time
        self.held: dict[str, tuple[Any, Any]] = {}

    def take(self, item: Item) -> Change | None:
        if item.key is None:
            raise SetAside("no key")
        if not self.by_event_time and not is_data(item.value):
            raise SetAside("error")
        text = canonical(item.key)
        rank = (item.at_ms,) if item.of_change else (item.at_ms, *item.place)
        before_rank, before = self.held.get(text, (None, None))
        if self.by_event_time and before_rank is not None and rank < before_rank:
            return None
        self.held[text] = rank, item.value
        return Change(item.key, before, item.value, item)

    def rows(self) -> dict[str, Any]:
        return {text: value for text, (_, value) in self.held.items() if value is not None}


def is_data(value: Any) -> bool:
    """Whether a value is made of nothing but what JSON knows."""
    if isinstance(value, dict):
        return all(map(is_data, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_data, value))
    return value is None or isinstance(value, str | int | float | bool)


class DerivedRows:
    """The rows of a table that is made of another by `filter` or `map_values`."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def take(self, change: Change) -> None:
        self.held[canonical(change.key)] = change.after

    def rows(self) -> dict[str, Any]:
        return {text: value for text, value in self.held.items() if value is not None}


def key_changed(node: Node) -> bool:
    """Whether a step between the source, or the table, and this one gives records another key."""
    if isinstance(node, Map | FlatMap | SelectKey) or (isinstance(node, Process) and not node.fixed_key):
        return True
    if isinstance(node, StreamJoin | HistoryLookup):
        return True
    if isinstance(node, Merge) and (len(set(map(waited_for, node.sources))) > 1 or len(topics_of(node)) > 1):
        return True
    ways = (node.stream,) if isinstance(node, TableLookup) else node.upstreams
    return not isinstance(node, ToStream | Ordered) and any(map(key_changed, ways))


def waited_for(node: Node) -> frozenset[Node]:
    """The steps before this one, and itself, that put records in order."""
    own = frozenset([node] if isinstance(node, Ordered) else [])
    return own.union(*map(waited_for, node.upstreams))


def topics_of(node: Node) -> set[str]:
    if isinstance(node, StreamSource | TableSource):
        return {node.topic}
    return set().union(*map(topics_of, node.upstreams))


def from_table(node: Node) -> bool:
    """Whether records here are the changes of a table."""
    ways = (node.stream,) if isinstance(node, TableLookup | HistoryLookup) else node.upstreams
    return node.is_table or any(map(from_table, ways))
