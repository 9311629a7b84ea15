"""The windows of one key that may still change: what new records make of them, and what closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from potok.kernels.expiry import NEVER
from potok.kernels.frame_fold import Failures, FrameFold
from potok.kernels.on_time import EventWindow, length_of
from potok.kernels.windowers import Bounds, Event, Frame, Windower, in_time_order, windower_of
from potok.state.codec import dump_state, load_own_state


class Revised(NamedTuple):
    """One row of the table before and after; `reach` is the stream time of the records that changed it."""

    bounds: Bounds
    before: bytes | None
    after: bytes | None
    reach: int


@dataclass(slots=True)
class KeyedWindows:
    """What the open cell of a key holds: the timer, when windows were closed last, the records, and the windows."""

    due: int | None = None
    closed_at: int = NEVER
    events: list[Event] = field(default_factory=list)
    cells: dict[Bounds, bytes] = field(default_factory=dict)

    @classmethod
    def load(cls, data: bytes | None) -> KeyedWindows:
        if data is None:
            return cls()
        due, closed_at, events, cells = load_own_state(data)
        return cls(due, closed_at, [Event(*event) for event in events], dict(cells))

    def dump(self) -> bytes | None:
        if not self.events:
            return None
        events = [event.kept() for event in self.events]
        return dump_state((self.due, self.closed_at, events, sorted(self.cells.items())))


class Keeper:
    """Takes records into the windows of a key, and closes them."""

    def __init__(self, window: EventWindow, fold: FrameFold) -> None:
        self._window, self._fold = window, fold
        self._windower: Windower = windower_of(window)

    def take(self, held: KeyedWindows, fresh: Sequence[Event], key: Any) -> tuple[list[Revised], Failures]:
        """Find the windows of all records and fold those that changed. A record that fails leaves no trace."""
        events = in_time_order([*held.events, *fresh])
        failures: Failures = {}
        while True:
            # Without a record that was there before, any window may hold something else.
            anew = any(not event.fresh for event in failures)
            frames = self._windower.frames(events, held.closed_at)
            cells, failed = self._folded(held, frames, key, anew=anew)
            if not failed:
                break
            failures |= failed
            events = [event for event in events if event not in failed]
        revised = self._compared(held, frames, cells, fresh)
        held.events, held.cells = events, cells
        for event in fresh:
            event.fresh = False
        return revised, failures

    def _folded(
        self, held: KeyedWindows, frames: list[Frame], key: Any, *, anew: bool
    ) -> tuple[dict[Bounds, bytes], Failures]:
        cells: dict[Bounds, bytes] = {}
        failures: Failures = {}
        for frame in frames:
            known = held.cells.get(frame.bounds)
            if known is not None and not anew and not frame.fresh:
                cells[frame.bounds] = known
                continue
            cells[frame.bounds], failed = self._fold.fold(key, frame.events)
            failures |= failed
        return cells, failures

    def _compared(
        self, held: KeyedWindows, frames: list[Frame], cells: dict[Bounds, bytes], fresh: Sequence[Event]
    ) -> list[Revised]:
        """The rows that differ: those that are gone first, each kind in the order of time."""
        revised = [
            Revised(bounds, data, None, self._cause(bounds, fresh))
            for bounds, data in sorted(held.cells.items())
            if bounds not in cells
        ]
        for frame in frames:
            before, after = held.cells.get(frame.bounds), cells[frame.bounds]
            reach = max((event.reach for event in frame.events if event.fresh), default=None)
            if reach is not None or before != after:
                cause = self._cause(frame.bounds, fresh) if reach is None else reach
                revised.append(Revised(frame.bounds, before, after, cause))
        return revised

    def _cause(self, bounds: Bounds, fresh: Sequence[Event]) -> int:
        """The stream time of a change that no record in the window caused: one of those before it did."""
        near = [event.reach for event in fresh if event.time <= bounds[1] + length_of(self._window)]
        return max(near or [event.reach for event in fresh])

    def close(self, held: KeyedWindows, clock_ms: int, *, woken: bool) -> list[tuple[Bounds, bytes]]:
        """Take out the windows that no accepted record can reach any more, and the records that nothing needs."""
        closes = {bounds: self._window.closes_ms(*bounds) for bounds in held.cells}
        closed = [(bounds, data) for bounds, data in sorted(held.cells.items()) if closes[bounds] <= clock_ms]
        for bounds, _ in closed:
            del held.cells[bounds]
        if closed or woken:
            held.closed_at = clock_ms
            held.events = self._needed(held, clock_ms)
        return closed

    def _needed(self, held: KeyedWindows, clock_ms: int) -> list[Event]:
        """Those from the first open window on, for windows close in the order of time, and those not yet outlived."""
        first = min((start for start, _ in held.cells), default=None)
        return [
            event
            for event in held.events
            if self._windower.outlived_at(event) > clock_ms or (first is not None and event.time >= first)
        ]

    def next_due(self, held: KeyedWindows) -> int | None:
        """When something of this key closes next, or when nothing of it is needed any more."""
        if held.cells:
            return min(int(self._window.closes_ms(*bounds)) for bounds in held.cells)
        return max((self._windower.outlived_at(event) for event in held.events), default=None)
