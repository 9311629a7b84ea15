"""Sessions and sliding windows: all records of a key are looked at again whenever one comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from potok.topology.nodes import Aggregate, Session, Sliding
from tests.oracle.aggregates import Kept, begin
from tests.oracle.call import UserError, call
from tests.oracle.canonical import canonical, windowed_key
from tests.oracle.records import Item
from tests.oracle.tables import AggregateRows, Change, SetAside

Times = tuple[int, int]


@dataclass(frozen=True)
class Failed:
    """A record that cannot be counted in, which may have come long before."""

    item: Item
    error: UserError


@dataclass(frozen=True)
class Noted:
    """A record, and whether it may begin a session and ends one."""

    item: Item
    opens: bool
    closes: bool


@dataclass(frozen=True)
class Shown:
    """A row, and the greatest event time in it."""

    result: Any
    at_ms: int
    last: Item


def rows_of_aggregate(node: Aggregate) -> Any:
    return EventRows(node) if isinstance(node.window, Session | Sliding) else AggregateRows(node)


class EventRows:
    """The rows of an aggregate in windows that follow the records of a key."""

    def __init__(self, node: Aggregate) -> None:
        assert isinstance(node.window, Session | Sliding)
        self.node, self.window = node, node.window
        self.noted: dict[str, list[Noted]] = {}
        self.keys: dict[str, Any] = {}
        self.rendered: dict[str, dict[Times, Shown]] = {}
        self.failing: dict[str, dict[int, Failed]] = {}

    def take(self, item: Item) -> Iterator[Change | SetAside | Failed]:
        if item.key is None:
            raise SetAside("no key")
        window, text = self.window, canonical(item.key)
        own_end_ms = item.at_ms + 1
        if own_end_ms + self.longest_ms + window.grace_ms <= item.stream_time_ms:
            raise SetAside("late")
        if isinstance(window, Sliding) and own_end_ms + window.grace_ms <= item.stream_time_ms:
            yield SetAside("late")
        noted = Noted(item, self.asked(item, "opens", True), self.asked(item, "closes", False))
        if self.node.aggregation.kind not in ("fold", "reduce", "count"):
            begin(self.node.aggregation).selected(item)  # a value that cannot be selected is not a record at all
        everything = [*self.noted.get(text, []), noted]
        everything.sort(key=lambda one: (one.item.at_ms, *one.item.place))
        rows, failures = self.in_sessions(everything) if isinstance(window, Session) else self.counted(everything)
        self.keys[text] = item.key
        before, self.rendered[text] = self.rendered.get(text, {}), rows
        if isinstance(window, Session):
            # What comes before a record may still decide whether it fails.
            self.noted[text], self.failing[text] = everything, failures
        else:
            self.noted[text] = [one for one in everything if id(one.item) not in failures]
            yield from failures.values()
        yield from self.differences(item, before, rows)

    @property
    def longest_ms(self) -> int:
        return self.window.gap_ms if isinstance(self.window, Session) else self.window.difference_ms

    def asked(self, item: Item, name: str, otherwise: bool) -> bool:
        test = getattr(self.window, name, None)
        return otherwise if test is None else bool(call(test, item.key, item.value))

    def in_sessions(self, noted: list[Noted]) -> tuple[dict[Times, Shown], dict[int, Failed]]:
        """One record after the other: it belongs to the session before it, begins one, or is in none. One that fails is
        as if it had not come."""
        assert isinstance(self.window, Session)
        failures: dict[int, Failed] = {}
        found: list[tuple[list[Noted], Kept]] = []
        for one in noted:
            inside = bool(found) and belongs(self.window, found[-1][0], one)
            if not inside and not one.opens:
                continue
            members, kept = found[-1] if inside else ([], begin(self.node.aggregation))
            try:
                kept.take(one.item)
            except UserError as error:
                failures[id(one.item)] = Failed(one.item, error)
                continue
            members.append(one)
            if not inside:
                found.append((members, kept))
        rows: dict[Times, Shown] = {}
        for members, kept in found:
            first, last = members[0].item, members[-1].item
            rows[first.at_ms, last.at_ms] = Shown(kept.result, last.at_ms, last)
        return rows, failures

    def counted(self, noted: list[Noted]) -> tuple[dict[Times, Shown], dict[int, Failed]]:
        """The rows of sliding windows, once all records that fail are left out."""
        assert isinstance(self.window, Sliding)
        failures: dict[int, Failed] = {}
        while True:
            rows: dict[Times, Shown] = {}
            good = [one for one in noted if id(one.item) not in failures]
            known = len(failures)
            for times, items in sliding_windows(self.window, [one.item for one in good]):
                kept = begin(self.node.aggregation)
                for item in items:
                    try:
                        kept.take(item)
                    except UserError as error:
                        failures[id(item)] = Failed(item, error)
                rows[times] = Shown(kept.result, max(item.at_ms for item in items), items[-1])
            if len(failures) == known:
                return rows, failures

    def differences(self, item: Item, before: dict[Times, Shown], after: dict[Times, Shown]) -> Iterator[Change]:
        for times in sorted({*before} - {*after}):
            was = before[times]
            yield Change(self.key(item.key, times), was.result, None, replace(item, at_ms=was.at_ms))
        for times, row in sorted(after.items(), key=lambda pair: pair[0]):
            was = before.get(times)
            if was != row:
                reported = replace(item, at_ms=row.at_ms)
                yield Change(self.key(item.key, times), was.result if was else None, row.result, reported)

    def key(self, key: Any, times: Times) -> Any:
        return windowed_key(key, *times)

    def close(self, stream_time_ms: int) -> list[Change | Failed]:
        """Drop the rows whose retention has passed, once nothing can reach them. Tell who fails for good: nothing that
        lies before it is accepted any more."""
        changes: list[Change | Failed] = [
            failed
            for failures in self.failing.values()
            for failed in failures.values()
            if failed.item.at_ms + self.longest_ms + self.window.grace_ms < stream_time_ms
        ]
        for text, rows in self.rendered.items():
            for times in [times for times in rows if self.dropped_at(*times) <= stream_time_ms]:
                row = rows.pop(times)
                key = self.key(self.keys[text], times)
                changes.append(Change(key, row.result, None, replace(row.last, at_ms=row.at_ms), dropped=True))
        return changes

    def dropped_at(self, start_ms: int, end_ms: int) -> int:
        window = self.window
        if isinstance(window, Sliding):
            closes_ms = end_ms + 1 + window.grace_ms
        else:
            last_ms = start_ms + window.gap_ms - 1 if window.from_first else end_ms + window.gap_ms
            closes_ms = last_ms + window.gap_ms + window.grace_ms + 1
        return max(closes_ms, end_ms + window.retention_ms)

    def rows(self) -> dict[str, Any]:
        return {
            canonical(self.key(self.keys[text], times)): row.result
            for text, rows in self.rendered.items()
            for times, row in rows.items()
        }


def belongs(window: Session, members: list[Noted], other: Noted) -> bool:
    first_ms, last_ms, at_ms = members[0].item.at_ms, members[-1].item.at_ms, other.item.at_ms
    if any(one.closes for one in members):
        return at_ms == last_ms
    return at_ms - first_ms < window.gap_ms if window.from_first else at_ms - last_ms <= window.gap_ms


def sliding_windows(window: Sliding, items: list[Item]) -> list[tuple[Times, list[Item]]]:
    """Every interval that a record ends, or begins right after, with all in it that were in time for it."""
    found: dict[Times, list[Item]] = {}
    for one in items:
        own = (one.at_ms - window.difference_ms, one.at_ms)
        after = (one.at_ms + 1, one.at_ms + 1 + window.difference_ms)
        for times in (own, after):
            inside = [item for item in items if times[0] <= item.at_ms <= times[1] and in_time(window, item, times)]
            if inside and (times == after or in_time(window, one, times)):
                found[times] = inside
    return sorted(found.items(), key=lambda pair: pair[0])


def in_time(window: Sliding, item: Item, times: Times) -> bool:
    return item.stream_time_ms < times[1] + 1 + window.grace_ms
