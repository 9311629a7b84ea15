"""One record among several that an agent has at once: what it saw and did stays its own until it is done.

While a flight waits for the outside world, its changes are taken out of the tables and its sends out of the output, so
that nobody sees them; they are put back each time it goes on. If somebody else has changed by then what it had looked
at, it is flown again. So all that is done is as if the records had come one after the other, in the order in which they
were done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NoReturn

from potok.errors import QueryError
from potok.operators.agents.context import Running, Undo
from potok.operators.agents.drive import END
from potok.operators.agents.tables import ABSENT, Entry, OpenTable
from potok.operators.agents.watched_values import Watched
from potok.operators.agents.windows import OpenWindows, WindowEntry

Look = Callable[[Any], None]


class Conflict(Exception):
    """Somebody else has changed what a flight had looked at."""


class OnATaskOfItsOwn(QueryError):
    """A table or a topic that was used by a task which an agent has started beside itself."""

    def __init__(self) -> None:
        super().__init__(
            "an agent that takes several records at once may use tables and topics in its own code alone",
            hint="let tasks and gather() return what they found, and write it down behind the await",
        )


class _Nobody:
    """Stands where the running crew is found, while no agent has its turn."""

    def __getattr__(self, name: str) -> NoReturn:
        raise OnATaskOfItsOwn


NOBODY: Any = _Nobody()


class InFlight:
    """A record on its way through an instance of an agent."""

    def __init__(self, number: int, item: Any, key: Any = None) -> None:
        self.number, self.item = number, item
        self.key = key if isinstance(key, Hashable) else repr(key)
        self.alone = False
        self.begin_again()

    def begin_again(self) -> None:
        self.turn: int | None = None
        self.at_hand = False
        self.looked_at: dict[Any, int] = {}
        """Entries, and tables of which all rows were asked for, with the number of the last change at that time."""
        self._dirty: list[Undo] = []
        self._sent: list[Any] = []
        self._base = 0
        self.posted: list[tuple[str, Any]] = []
        self._watched: list[Watched] = []


class ConcurrencyControl:
    """The crew as flights find it: who is at hand, and what was changed since when."""

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
        """Set what is at hand to a record, for an agent that takes one after the other."""
        self._look_at(number)
        self._running.stand_in = None
        if item is not END:
            self._running.value = item

    def note_changes(self) -> None:
        """Remember what the turn that has just ended has changed."""
        self._number += 1
        for entry, before, *_ in self._running.undo:
            value = entry.value
            if value is not before and (value is ABSENT or before is ABSENT or value != before):
                self._changed[entry] = self._changed[entry.table.name] = self._number

    def enter(self, flight: InFlight, agent: str) -> None:
        """Put back what a flight has done so far, and let it be the one at hand."""
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
        """Take out what a flight has done, for it goes on waiting."""
        running = self._running
        flight._dirty = [(entry, entry.value, entry.time, entry.changed) for entry, *_ in running.undo]
        flight._sent, flight.posted = running.sent[flight._base :], running.posted
        # Those of the flight stay for when it goes on.
        running.watched = []
        running.take_back(flight._base, apart=True)
        self._away(flight)

    def land(self, flight: InFlight) -> None:
        """What a flight has done stands."""
        self.note_changes()
        flight.posted = self._running.posted
        self._away(flight)

    def give_up(self, flight: InFlight) -> None:
        """What a flight has done goes."""
        if flight.at_hand:
            self._running.take_back(flight._base, apart=True)
            self._away(flight)
        flight.posted = []

    def _away(self, flight: InFlight) -> None:
        running = self._running
        if running.held:
            running.let_go()
        running.turn, running.posted, running.watched = self._outer
        running.undo, running.tables = [], self._tables
        self._flight, flight.at_hand = None, False
        running.stand_in = NOBODY


class TrackedTable(OpenTable):
    """A table whose rows are looked at by flights."""

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
    """The same table, seen by one who is watched: both have the same entries."""
    kind: type[TrackedWindows | TrackedTable] = TrackedWindows if isinstance(table, OpenWindows) else TrackedTable
    table.overlaid = True
    made = object.__new__(kind)
    made.__dict__ = table.__dict__
    made._look = look
    return made
