"""The timers of a processor: those of the current key, and the cells that store them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

from potok.operators.cells.timer_index import Timers
from potok.operators.windows.expiry import NEVER
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

FAR = 1 << 61

Rows = list[tuple[bytes, bytes | None, bytes | None]]
"""Key, cell, and previous cell."""


def instant_ms(value: Any) -> int:
    """Return an instant given by a program: a whole number, in the range that any clock can reach."""
    at = index(value)
    if not -FAR <= at <= FAR:
        raise ValueError(f"{at} is not an instant in milliseconds")
    return at


class Timer(NamedTuple):
    """The time, the name, and the stream time at which it was scheduled."""

    at: int
    name: str
    since: int


class KeyTimers:
    """The timers of one key, by time and name, for each of the two clocks.

    `look_ms` is a watermark at which some state of the key may expire.
    """

    __slots__ = ("events", "look_ms", "walls")

    def __init__(self, data: bytes | None = None) -> None:
        events, walls, look_ms = load_state(data) if data is not None else ((), (), None)
        self.look_ms: int | None = look_ms
        self.events = [Timer(*timer) for timer in events]
        self.walls = [Timer(*timer) for timer in walls]

    def data(self) -> bytes | None:
        if not self.events and not self.walls and self.look_ms is None:
            return None
        return dump_state(([list(t) for t in self.events], [list(t) for t in self.walls], self.look_ms))

    def copy(self) -> KeyTimers:
        other = KeyTimers()
        other.events, other.walls, other.look_ms = list(self.events), list(self.walls), self.look_ms
        return other

    def add(self, timer: Timer, *, wall: bool) -> None:
        timers = self.walls if wall else self.events
        if not any(known.at == timer.at and known.name == timer.name for known in timers):
            insort(timers, timer)

    def cancel(self, name: str) -> None:
        self.events = [timer for timer in self.events if timer.name != name]
        self.walls = [timer for timer in self.walls if timer.name != name]

    def readings(self) -> set[int]:
        """Return the watermarks at which there is something to do."""
        times = {timer.at for timer in self.events}
        return times if self.look_ms is None else {*times, self.look_ms}

    def processing_timers(self) -> set[int]:
        return {timer.at for timer in self.walls}


class TimerCells:
    """The timers of all keys of a step on one shard, with an index for each clock."""

    def __init__(self, step: str, session: StateSession) -> None:
        self._table, self._session = f"{step}/timers-by-key", session
        self._by_time = Timers(f"{step}/timers-by-time", session)
        self._by_wall = Timers(f"{step}/timers-by-wall", session)

    @property
    def tables(self) -> list[str]:
        return [self._table, self._by_time.table, self._by_wall.table]

    def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._session.read(self._table, keys)

    def due(self, watermark_ms: int, processing_time_ms: int) -> set[bytes]:
        """Return the keys with something to do at this watermark and processing time."""
        bounds = ((self._by_time, watermark_ms), (self._by_wall, processing_time_ms))
        return {key for entries, bound in bounds if bound > NEVER for _, key in entries.due(bound)}

    def write(self, rows: Rows) -> None:
        """Write the cells of the keys whose timers have changed."""
        if not rows:
            return
        self._session.write(self._table, rows)
        befores = [(key, KeyTimers(before)) for key, _, before in rows]
        afters = [(key, KeyTimers(data)) for key, data, _ in rows]
        self._by_time.change(*([(at, key) for key, t in side for at in t.readings()] for side in (afters, befores)))
        self._by_wall.change(
            *([(at, key) for key, t in side for at in t.processing_timers()] for side in (afters, befores))
        )

    def next_due(self) -> int | None:
        return self._by_time.next_due()

    def next_timer(self) -> int | None:
        return self._by_wall.next_due()
