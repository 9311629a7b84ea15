"""Tables of agents with windows: a row for each key and window, which goes when the clock has passed its life."""

from __future__ import annotations

from typing import Any, NamedTuple

from potok.errors import StateError
from potok.kernels.agents_running import Running
from potok.kernels.agents_tables import ABSENT, Entry, OpenTable
from potok.kernels.timers import Timers
from potok.kernels.windows import time_of
from potok.records.keys import decode_keys
from potok.state.session import StateSession
from potok.topology.agents import TablePart
from potok.topology.nodes import FixedWindow

TIME = 8
_BIAS = 1 << 63


class LateForWindow(StateError):
    """A record whose window is over."""

    def __init__(self, table: str, start_ms: int) -> None:
        super().__init__(
            f'the window of table "{table}" that begins at {start_ms} is over for this record',
            hint="keep windows for longer: .tumbling(size, expires=timedelta(days=7))",
        )


class Closed(NamedTuple):
    """A window at its end."""

    key: Any
    start_ms: int
    end_ms: int
    value: Any
    entry: Entry


class OpenWindows(OpenTable):
    """A place is that of the key, and the start of a window."""

    def __init__(self, part: TablePart, running: Running, session: StateSession, *, spread: bool) -> None:
        super().__init__(part, running, session, spread=spread)
        assert part.window is not None
        self._window: FixedWindow = part.window
        self._ends = None if part.expires_ms is None else Timers(f"{part.name}/by_end", session)

    @property
    def tables(self) -> list[str]:
        return [self.name, *([] if self._ends is None else [self._ends.table])]

    def starts(self, instant_ms: int) -> range:
        """The windows that an instant falls into, the oldest first."""
        advance, size = self._window.advance_ms, self._window.size_ms
        last = instant_ms - instant_ms % advance
        return range(last - (size - 1 - (instant_ms - last)) // advance * advance, last + 1, advance)

    def instant_ms(self) -> int:
        """The time whose windows are meant."""
        if self.part.wall:
            return self._running.processing_time_ms
        if self.part.instant is not None:
            return self.part.instant(self._running.value)
        return self._running.timestamp

    @property
    def processing_time_ms(self) -> int:
        return self._running.processing_time_ms

    @property
    def timestamp_ms(self) -> int:
        return self._running.timestamp

    def window(self, key: Any, start_ms: int, *, change: bool = False) -> Entry:
        if self._spread:
            self.check_own(key)
        if change and self._over(start_ms):
            raise LateForWindow(self.name, start_ms)
        place = (key if type(key) is str else self.canonical(key), start_ms)
        entry = self._entries.get(place)
        if entry is None:
            cell = self.canonical(key) + (start_ms + _BIAS).to_bytes(TIME, "big")
            entry = self.enter(place, cell, self._session.read(self.name, [cell])[0])
        return entry

    def _over(self, start_ms: int) -> bool:
        if self.part.expires_ms is None:
            return False
        now_ms = self._running.processing_time_ms if self.part.wall else self._running.stream_time
        return self._due(start_ms) <= now_ms

    def _due(self, start_ms: int) -> int:
        assert self.part.expires_ms is not None
        return start_ms + self._window.size_ms + self.part.expires_ms

    def closing(self, clock_ms: int) -> list[Closed]:
        """The windows whose life is over, the earliest first, those of this batch among them."""
        if self._ends is None:
            return []
        for _, cell in self._ends.due(clock_ms):
            place = self._place(cell)
            if place not in self._entries:
                self.enter(place, cell, self._session.read(self.name, [cell])[0])
        due = [entry for entry in self._entries.values() if self._due(time_of(entry.key[-TIME:])) <= clock_ms]
        found: list[Closed] = []
        for entry in sorted(due, key=lambda entry: (entry.key[-TIME:], entry.key)):
            if entry.value is not ABSENT:
                start_ms = time_of(entry.key[-TIME:])
                found.append(
                    Closed(self._key(entry.key), start_ms, start_ms + self._window.size_ms, entry.value, entry)
                )
        return found

    def _place(self, cell: bytes) -> tuple[Any, int]:
        key = self._key(cell)
        return key if type(key) is str else cell[:-TIME], time_of(cell[-TIME:])

    def _key(self, cell: bytes) -> Any:
        return decode_keys([cell[:-TIME]], self.part.key_type)[0]

    def next_due(self) -> int | None:
        return None if self._ends is None else self._ends.next_due()

    def write(self) -> None:
        changes = self.changes()
        if not changes:
            return
        self._session.write(self.name, [(entry.key, data, entry.data) for entry, data in changes])
        if self._ends is not None:
            ends = [(self._due(time_of(entry.key[-TIME:])), entry.key, entry.data, data) for entry, data in changes]
            self._ends.change(
                [(due, key) for due, key, old, new in ends if old is None and new is not None],
                [(due, key) for due, key, old, new in ends if old is not None and new is None],
            )
