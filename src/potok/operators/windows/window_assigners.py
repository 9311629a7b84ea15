"""The windows that the records of one key form, independent of their order of arrival."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from potok.operators.windows.lateness import EventWindow
from potok.topology.nodes import Session, Sliding

Position = tuple[str, int, int]
"""Topic, partition and offset."""

Bounds = tuple[int, int]
"""The start and the end of a window, both inclusive."""


@dataclass(slots=True, eq=False)
class Event:
    """A record as long as it may matter. `reach` is its stream time, `fresh` says that it is from this batch."""

    time: int
    add: Position
    reach: int
    value: Any
    opens: bool = True
    closes: bool = False
    fresh: bool = False

    @classmethod
    def of(cls, stored: list[Any]) -> Event:
        time, topic, partition, offset, reach, value, opens, closes = stored
        return cls(time, (topic, partition, offset), reach, value, opens, closes)

    def stored(self) -> list[Any]:
        return [self.time, *self.add, self.reach, self.value, self.opens, self.closes]


@dataclass(slots=True)
class Frame:
    """A window with its records, in the order of time and position."""

    start: int
    end: int
    events: list[Event]

    @property
    def bounds(self) -> Bounds:
        return self.start, self.end

    @property
    def fresh(self) -> bool:
        return any(event.fresh for event in self.events)


def in_time_order(events: Iterable[Event]) -> list[Event]:
    """Sort by event time, then by position. Results of one record keep their order."""
    return sorted(events, key=lambda event: (event.time, event.add))


class WindowAssigner(ABC):
    """Find the windows of one key."""

    @abstractmethod
    def frames(self, events: list[Event], closed_at: int) -> list[Frame]:
        """Return the windows of these records, in order, without those that were closed at this watermark."""

    @abstractmethod
    def outlived_at(self, event: Event) -> int:
        """Return the watermark from which no accepted record could add this one to another window."""


class SessionAssigner(WindowAssigner):
    def __init__(self, window: Session) -> None:
        self._window = window

    def frames(self, events: list[Event], closed_at: int) -> list[Frame]:
        """Return all sessions: records of closed ones are not kept, so none needs to be left out."""
        found: list[Frame] = []
        current: Frame | None = None
        ended = False
        for event in events:
            if current is not None and self.takes(current, event, ended=ended):
                current.events.append(event)
                current.end = event.time
            elif event.opens:
                current, ended = Frame(event.time, event.time, [event]), False
                found.append(current)
            else:
                current = None
            ended = ended or (current is not None and event.closes)
        return found

    def takes(self, session: Frame, event: Event, *, ended: bool) -> bool:
        """Whether the next record belongs to a session; `ended` says that one of its records closes it."""
        if ended:
            # A row is identified by its times, so records of one instant belong to one session.
            return event.time == session.end
        if self._window.from_first:
            return event.time < session.start + self._window.gap_ms
        return event.time <= session.end + self._window.gap_ms

    def outlived_at(self, event: Event) -> int:
        # Only a session that starts before it could take it, with a record that is late by then.
        return event.time + self._window.gap_ms + self._window.grace_ms + 1


class SlidingAssigner(WindowAssigner):
    def __init__(self, window: Sliding) -> None:
        self._window = window

    def frames(self, events: list[Event], closed_at: int) -> list[Frame]:
        """Return one window that ends with each record and one that starts right after it, if that holds any.

        A record counts in the windows that were open for it; if its own was not, it does not create one.
        """
        length, grace = self._window.difference_ms, self._window.grace_ms
        times = [event.time for event in events]
        least = [max(event.time, event.reach - grace) for event in events]
        starts = {time - length for time, end in zip(times, least, strict=True) if end == time}
        starts.update(time + 1 for time in times)
        partly = list(accumulate((end > time for time, end in zip(times, least, strict=True)), initial=0))
        found: list[Frame] = []
        for start in sorted(starts):
            end = start + length
            if end + 1 + grace <= closed_at:
                continue
            low, high = bisect_left(times, start), bisect_right(times, end)
            held = events[low:high]
            if partly[high] > partly[low]:
                held = [event for event, first in zip(held, least[low:high], strict=True) if first <= end]
            if held:
                found.append(Frame(start, end, held))
        return found

    def outlived_at(self, event: Event) -> int:
        # The window that starts right after it closes then, and all that hold it have closed.
        return event.time + self._window.difference_ms + 2 + self._window.grace_ms


def window_assigner_of(window: EventWindow) -> WindowAssigner:
    return SessionAssigner(window) if isinstance(window, Session) else SlidingAssigner(window)
