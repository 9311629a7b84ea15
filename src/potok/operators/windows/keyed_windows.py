"""The windows of one key that may still change: how new records change them, and which ones close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from potok.operators.core.call import describe_error
from potok.operators.windows.expiry import NEVER
from potok.operators.windows.lateness import EventWindow, length_of
from potok.operators.windows.window_assigners import (
    Bounds,
    Event,
    Frame,
    SessionAssigner,
    WindowAssigner,
    in_time_order,
    window_assigner_of,
)
from potok.operators.windows.window_fold import Failures, FrameFold
from potok.state.codec import dump_state, load_state


class Revised(NamedTuple):
    """One row of the table before and after; `reach` is the stream time of the records that changed it."""

    bounds: Bounds
    before: bytes | None
    after: bytes | None
    reach: int


@dataclass(slots=True)
class KeyedWindows:
    """The content of a key's open cell: the timer, when windows were last closed, the records, and the windows.

    `failed` are records of sessions that currently raise: earlier records that arrive later may change that.
    """

    due: int | None = None
    closed_at: int = NEVER
    events: list[Event] = field(default_factory=list)
    cells: dict[Bounds, bytes] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)

    @classmethod
    def load(cls, data: bytes | None) -> KeyedWindows:
        if data is None:
            return cls()
        due, closed_at, stored, cells, failed = load_state(data)
        events = [Event.of(event) for event in stored]
        found = {(start, end): cell for start, end, cell in cells}
        return cls(due, closed_at, events, found, {events[number]: text for number, text in failed})

    def dump(self) -> bytes | None:
        if not self.events:
            return None
        events = [event.stored() for event in self.events]
        failed = [[number, self.failed[event]] for number, event in enumerate(self.events) if event in self.failed]
        cells = [[start, end, cell] for (start, end), cell in sorted(self.cells.items())]
        return dump_state((self.due, self.closed_at, events, cells, failed))


def window_cells(data: bytes) -> list[tuple[Bounds, bytes]]:
    """Return the windows in the open cell of a key, each with its cell after closing."""
    return [((start, end), cell) for start, end, cell in load_state(data)[3]]


class Keeper:
    """Add records to the windows of a key, and close windows. A record that fails has no effect on any window.

    Sessions are derived from the records in time order. Whether a record fails, and in which session, is final when
    no accepted record can arrive before it. Until then it is kept like the others.
    """

    def __init__(self, window: EventWindow, fold: FrameFold) -> None:
        self._window, self._fold = window, fold
        self._assigner: WindowAssigner = window_assigner_of(window)

    def take(self, held: KeyedWindows, fresh: Sequence[Event], key: Any) -> tuple[list[Revised], Failures]:
        """Find the windows of all records and aggregate those that changed; return the rows, and the records that
        failed for good."""
        events = in_time_order([*held.events, *fresh])
        frames, cells, failures = self._formed(held, events, key)
        revised = self._compared(held, frames, cells, fresh)
        held.cells = cells
        if isinstance(self._assigner, SessionAssigner):
            held.events, held.failed, failures = events, failures, {}
        else:
            held.events = [event for event in events if event not in failures]
        for event in fresh:
            event.fresh = False
        return revised, failures

    def _formed(
        self, held: KeyedWindows, events: list[Event], key: Any
    ) -> tuple[list[Frame], dict[Bounds, bytes], Failures]:
        failures: Failures = {}
        while not held.failed:
            # Unless a record was there before, any window may have changed.
            recompute = any(not event.fresh for event in failures)
            frames = self._assigner.frames(events, held.closed_at)
            cells, failed = self._folded(held, frames, key, recompute=recompute)
            failures |= failed
            if not failed:
                return frames, cells, failures
            if isinstance(self._assigner, SessionAssigner):
                break
            events = [event for event in events if event not in failed]
        assert isinstance(self._assigner, SessionAssigner)
        return self._one_by_one(self._assigner, events, key)

    def _one_by_one(
        self, assigner: SessionAssigner, events: list[Event], key: Any
    ) -> tuple[list[Frame], dict[Bounds, bytes], Failures]:
        """Add each record to the session of the records before it."""
        frames: list[Frame] = []
        cells: list[bytes] = []
        failures: Failures = {}
        ended = False
        for event in events:
            taken = bool(frames) and assigner.takes(frames[-1], event, ended=ended)
            if not taken and not event.opens:
                continue
            try:
                data = self._fold.add(cells[-1] if taken else None, key, event)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                failures[event] = describe_error(error)
                continue
            if not taken:
                frames.append(Frame(event.time, event.time, []))
                cells.append(data)
            frames[-1].events.append(event)
            frames[-1].end, cells[-1] = event.time, data
            ended = event.closes or (taken and ended)
        if self._fold.by_offset:
            cells = [self._fold.fold(key, frame.events)[0] for frame in frames]
        return frames, {frame.bounds: data for frame, data in zip(frames, cells, strict=True)}, failures

    def _folded(
        self, held: KeyedWindows, frames: list[Frame], key: Any, *, recompute: bool
    ) -> tuple[dict[Bounds, bytes], Failures]:
        cells: dict[Bounds, bytes] = {}
        failures: Failures = {}
        for frame in frames:
            known = held.cells.get(frame.bounds)
            if known is not None and not recompute and not frame.fresh:
                cells[frame.bounds] = known
                continue
            cells[frame.bounds], failed = self._fold.fold(key, frame.events)
            failures |= failed
        return cells, failures

    def _compared(
        self, held: KeyedWindows, frames: list[Frame], cells: dict[Bounds, bytes], fresh: Sequence[Event]
    ) -> list[Revised]:
        """Return the rows that differ: deleted ones first, each kind in time order."""
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
        """Return the stream time of a change that no record in the window caused: an earlier record did."""
        near = [event.reach for event in fresh if event.time <= bounds[1] + length_of(self._window)]
        return max(near or [event.reach for event in fresh])

    def close(self, held: KeyedWindows, watermark_ms: int, *, woken: bool) -> list[tuple[Bounds, bytes]]:
        """Remove the windows that no accepted record can reach any more, and the records that are not needed."""
        closes = {bounds: self._window.closes_ms(*bounds) for bounds in held.cells}
        closed = [(bounds, data) for bounds, data in sorted(held.cells.items()) if closes[bounds] <= watermark_ms]
        for bounds, _ in closed:
            del held.cells[bounds]
        if closed or woken:
            held.closed_at = watermark_ms
            held.events = self._needed(held, watermark_ms)
        return closed

    def settle(self, held: KeyedWindows, watermark_ms: int) -> Failures:
        """Remove the records that fail in any case."""
        settled = {
            event: text for event, text in held.failed.items() if self._assigner.outlived_at(event) <= watermark_ms
        }
        if settled:
            held.events = [event for event in held.events if event not in settled]
            held.failed = {event: text for event, text in held.failed.items() if event not in settled}
        return settled

    def _needed(self, held: KeyedWindows, watermark_ms: int) -> list[Event]:
        """Return the records from the first open window on, because windows close in time order, and those not yet
        outlived."""
        first = min((start for start, _ in held.cells), default=None)
        return [
            event
            for event in held.events
            if self._assigner.outlived_at(event) > watermark_ms or (first is not None and event.time >= first)
        ]

    def next_due(self, held: KeyedWindows) -> int | None:
        """Return when a window of this key closes next or a record fails for good, or when nothing of it is needed
        any more."""
        dues = [int(self._window.closes_ms(*bounds)) for bounds in held.cells]
        dues += [self._assigner.outlived_at(event) for event in held.failed]
        if dues:
            return min(dues)
        return max((self._assigner.outlived_at(event) for event in held.events), default=None)
