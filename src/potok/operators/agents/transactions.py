"""One record among several that an agent processes concurrently: its reads and writes stay isolated until it is done.

While a transaction waits for an external system, its changes are removed from the tables and its sends from the
output, so that they are invisible; they are restored each time it resumes. If another one has changed what it had
read by then, it runs again. So the result is as if the records had been processed one after the other, in the order
in which they were completed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NoReturn

from potok.errors import QueryError
from potok.operators.agents.context import Running, Undo
from potok.operators.agents.drive import END
from potok.operators.agents.tables import ABSENT, Entry, OpenTable
from potok.operators.agents.values import Watched
from potok.operators.agents.windows import OpenWindows, WindowEntry

Look = Callable[[Any], None]


class Conflict(Exception):
    """Another transaction has changed what this one had read."""


class OnATaskOfItsOwn(QueryError):
    """A table or a topic that was used by a task which an agent has started."""

    def __init__(self) -> None:
        super().__init__(
            "an agent with concurrency may use tables and topics only in its own code, not in tasks it starts",
            hint="let tasks and gather() return their results, and store them after the await",
        )


class _Nobody:
    """Replaces the running agent group while no agent has its turn."""

    def __getattr__(self, name: str) -> NoReturn:
        raise OnATaskOfItsOwn


NOBODY: Any = _Nobody()


class InFlight:
    """A record that an instance of an agent processes."""

    def __init__(self, number: int, item: Any, key: Any = None) -> None:
        self.number, self.item = number, item
        self.key = key if isinstance(key, Hashable) else repr(key)
        self.alone = False
        self.begin_again()

    def begin_again(self) -> None:
        self.turn: int | None = None
        self.at_hand = False
        self.looked_at: dict[Any, int] = {}
        """Entries, and tables whose rows were all read, with the number of the last change at that time."""
        self._dirty: list[Undo] = []
        self._sent: list[Any] = []
        self._base = 0
        self.posted: list[tuple[str, Any]] = []
        self._watched: list[Watched] = []


class ConcurrencyControl:
    """The agent group as seen by transactions: the current one, and when each entry was last changed."""

    def __init__(self, running: Running, look_at: Callable[[int], Any]) -> None:
        self._running, self._look_at = running, look_at
        self._tables = running.tables
        self._tracked = {name: tracked(table, self._look) for name, table in running.tables.items()}
        self._flight: InFlight | None = None
        self._changed: dict[Any, int] = {}
        self._number = 0

    def _look(self, what: Any) -> None:
        assert self._flight is not None
        self._flight.looked_at.setdefault(what, self._number)

    def set_to(self, number: int, item: Any) -> None:
        """Set the current record, for an agent that processes one after the other."""
        self._look_at(number)
        self._running.stand_in = None
        if item is not END:
            self._running.value = item

    def note_changes(self) -> None:
        """Record the changes of the turn that has just ended."""
        self._number += 1
        for entry, before, *_ in self._running.undo:
            value = entry.value
            if value is not before and (value is ABSENT or before is ABSENT or value != before):
                self._changed[entry] = self._changed[entry.table.name] = self._number

    def enter(self, flight: InFlight, agent: str) -> None:
        """Restore the changes of a transaction, and make it the current one."""
        if any(self._changed.get(what, 0) > at for what, at in flight.looked_at.items()):
            raise Conflict
        running = self._running
        if flight.turn is None:
            running.turn += 1
            flight.turn = running.turn
        self._outer = running.turn, running.posted, running.watched
        self.set_to(flight.number, flight.item)
        running.agent, running.turn, running.tables = agent, flight.turn, self._tracked
        running.undo = [self._installed(flight, *undo) for undo in flight._dirty]
        running.posted, running.watched = flight.posted, flight._watched
        flight._base = len(running.sent)
        running.sent += flight._sent
        self._flight, flight.at_hand = flight, True

    def _installed(self, flight: InFlight, entry: Entry, value: Any, time: int, changed: bool | None) -> Undo:
        assert flight.turn is not None
        before = entry, entry.value, entry.time, entry.changed
        entry.value, entry.time, entry.changed, entry.seen = value, time, changed, flight.turn
        return before

    def leave(self, flight: InFlight) -> None:
        """Remove the changes of a transaction while it waits."""
        running = self._running
        flight._dirty = [(entry, entry.value, entry.time, entry.changed) for entry, *_ in running.undo]
        flight._sent, flight.posted = running.sent[flight._base :], running.posted
        # Those of the transaction are kept until it resumes.
        running.watched = []
        running.take_back(flight._base, apart=True)
        self._set_aside(flight)

    def land(self, flight: InFlight) -> None:
        """Commit a transaction."""
        self.note_changes()
        flight.posted = self._running.posted
        self._set_aside(flight)

    def give_up(self, flight: InFlight) -> None:
        """Roll back a transaction."""
        if flight.at_hand:
            self._running.take_back(flight._base, apart=True)
            self._set_aside(flight)
        flight.posted = []

    def _set_aside(self, flight: InFlight) -> None:
        running = self._running
        if running.held:
            running.let_go()
        running.turn, running.posted, running.watched = self._outer
        running.undo, running.tables = [], self._tables
        self._flight, flight.at_hand = None, False
        running.stand_in = NOBODY


class TrackedTable(OpenTable):
    """A table whose reads by transactions are tracked."""

    _look: Look

    def get_or_default(self, key: Any) -> Any:
        return self.default_of(self.entry(key), key)

    def set(self, key: Any, value: Any) -> None:
        self.put(self.entry(key), value)

    def entry(self, key: Any) -> Entry:
        found = super().entry(key)
        self._look(found)
        return found

    def count(self) -> int:
        self._look(self.name)
        return super().count()

    def rows(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[Any, Any]]:
        self._look(self.name)
        return super().rows(start, stop)


class TrackedWindows(OpenWindows):
    """The same, with windows."""

    _look: Look

    def window(self, key: Any, start_ms: int, *, change: bool = False) -> WindowEntry:
        found = super().window(key, start_ms, change=change)
        self._look(found)
        return found

    def rows(self, start: bytes = b"", stop: bytes | None = None) -> Iterator[tuple[Any, Any]]:
        self._look(self.name)
        return super().rows(start, stop)


def tracked(table: OpenTable, look: Look) -> OpenTable:
    """Return the same table with tracked reads: both have the same entries."""
    kind: type[TrackedWindows | TrackedTable] = TrackedWindows if isinstance(table, OpenWindows) else TrackedTable
    table.overlaid = True
    made = object.__new__(kind)
    made.__dict__ = table.__dict__
    made._look = look
    return made
