"""Rows of agents' tables that are changed in place: changes are detected, and can be undone.

An in-place change is not reported by the agent. So a row that a turn reads is copied first. The next turn that reads
it compares, and detects whether the previous one has changed it. Large rows would take longer with each record that
makes them larger: they are not copied, and if one of them has to be restored, the batch is attempted again with
copies of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from potok.operators.agents.context import NO_RECORD, Running
from potok.operators.agents.values import IMMUTABLE, SETTLED, copied, models
from potok.state.codec import StateNotData, dump_state

if TYPE_CHECKING:
    from potok.operators.agents.tables import OpenTable

LARGE_BYTES = 4096
"""Copying a row of up to this size costs about as much as everything else that is done for a record."""

WEIGHED_FIRST = 32
"""A row is measured after this many copies, and again each time their number doubles."""

_new: Any = object.__new__


class NoCopy(Exception):
    """A large row, which has no copy, was changed and has to be restored."""


class _Large:
    """Replaces the copy of a large row."""


LARGE: Any = _Large()


class Entry:
    """One cell: its key, its bytes before the batch, its value, and the time of the last change.

    `changed` is None for a default that was handed out and not set: it becomes a row if it is changed in place.
    """

    __slots__ = ("changed", "data", "hold", "key", "seen", "table", "time", "value")

    def __init__(self, table: OpenTable, key: bytes, data: bytes | None, value: Any, time: int) -> None:
        self.table, self.key, self.data, self.value, self.time = table, key, data, value, time
        self.changed: bool | None = False
        self.seen = NO_RECORD - 1
        self.hold: Hold | None = None

    def restore(self, before: Any) -> None:
        """Restore the value from before this turn in the same object, because an agent may have read it before its
        loop."""
        if before is LARGE:
            raise NoCopy(self.table.name)
        own = before if self.hold is None else self.hold.own
        self.value = own if own is not before and _refilled(own, before) else before
        self.hold = None
        self.seen = NO_RECORD - 1


class Hold:
    """A row that may be changed in place: the value `own` itself, a copy of it `before`, and the time `at` of the
    record for which it was handed out.
    """

    __slots__ = ("_copies", "at", "before", "large", "own")

    def __init__(self, entry: Entry, at: int) -> None:
        self.own, self.before, self.at = entry.value, entry.value, at
        self._copies = 0
        self.large = entry.data is not None and len(entry.data) > LARGE_BYTES

    def copy(self, entry: Entry) -> Any:
        count = self._copies = self._copies + 1
        if count >= WEIGHED_FIRST and not count & count - 1:
            try:
                self.large = len(dump_state(entry.table.frozen(entry.value))) > LARGE_BYTES
            except StateNotData:
                # The careful attempt finds the agent that caused it.
                pass
        return copied(entry.value)


def remember(entry: Entry, running: Running) -> None:
    """Prepare a row before a turn reads or changes it."""
    value = entry.value
    kind = type(value)
    before: Any = value
    if kind in SETTLED:
        entry.hold = None
    else:
        hold = entry.hold
        if hold is None:
            hold = entry.hold = Hold(entry, running.timestamp)
        elif hold.at > entry.time or not entry.changed:
            settle(entry, hold)
        if kind in models and IMMUTABLE.issuperset(map(type, (parts := value.__dict__).values())):
            before = _new(kind)
            before.__dict__ = parts.copy()
        elif hold.large and not running.copies_all:
            before = LARGE
        else:
            before = hold.copy(entry)
        hold.own, hold.before, hold.at = value, before, running.timestamp
    running.undo.append((entry, before, entry.time, entry.changed))
    entry.seen = running.turn


def lend(entry: Entry, value: Any, running: Running) -> None:
    """Hand out a default."""
    entry.value, entry.changed = value, None
    entry.hold = Hold(entry, running.timestamp)


def settle(entry: Entry, hold: Hold) -> None:
    """Record whether the row was changed in place since it was handed out. For a large one this is only known at the
    end."""
    value = entry.value
    if entry.changed is None:
        changed = not entry.table.is_default(value)
    else:
        changed = hold.before is not LARGE and not _same(hold.before, value)
    if changed:
        entry.changed = True
        entry.time = max(entry.time, hold.at)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    return bool(one.__dict__ == other.__dict__ if type(one) in models else one == other)


def _refilled(value: Any, before: Any) -> bool:
    """Whether a value could be restored in place."""
    kind = type(value)
    if kind is not type(before):
        return False
    if kind is list:
        value[:] = before
    elif kind is dict or kind is set:
        value.clear()
        value.update(before)
    elif kind in models:
        value.__dict__ = before.__dict__
    else:
        return False
    return True
