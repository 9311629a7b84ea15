"""Times by five fields, as cron has them: minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from potok.errors import Location, TopologyError

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_YEAR = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_YEAR, 1)}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_NAMES: tuple[dict[str, int], ...] = ({}, {}, {}, _MONTHS, _DAYS)
_FOUR_YEARS = 4 * 366


class NotCron(TopologyError):
    """A text that says no times."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f'"{text}" is not a time for cron',
            hint='write minute hour day month weekday: "*/5 * * * *", "0 9 * * mon"',
            at=Location.of_caller(),
        )


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @classmethod
    def of(cls, text: str) -> Cron:
        parts = text.lower().split()
        if len(parts) != len(_BOUNDS):
            raise NotCron(text)
        try:
            fields = [_field(part, *bounds, names) for part, bounds, names in zip(parts, _BOUNDS, _NAMES, strict=True)]
        except ValueError as error:
            raise NotCron(text) from error
        weekdays = frozenset(day % 7 for day in fields[4])
        return cls(fields[0], fields[1], fields[2], fields[3], weekdays, parts[2] == "*", parts[4] == "*")

    def after(self, instant: datetime) -> datetime | None:
        """The first time later than an instant, in its zone; None if there is none, such as for 30 February."""
        start = instant.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = start.replace(hour=0, minute=0)
        for _ in range(_FOUR_YEARS):
            if self._on(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = day.replace(hour=hour, minute=minute)
                        if found >= start:
                            return found
            day += timedelta(days=1)
        return None

    def _on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        # As cron does: where both are given, either will do.
        return (of_month and of_week) if self.any_day or self.any_weekday else (of_month or of_week)


def wait_for_cron(text: str, zone: Any = None) -> Callable[[], float | None]:
    """How many seconds are left until the next time; none if there is no such time. UTC unless a zone is given."""
    cron = Cron.of(text)
    place = ZoneInfo(zone) if isinstance(zone, str) else zone or UTC

    def wait_s() -> float | None:
        now = datetime.now(UTC)
        due = cron.after(now.astimezone(place))
        return None if due is None else (due - now).total_seconds()

    return wait_s


def _field(text: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = int(step_text) if slash else 1
        first, dash, last = span.partition("-")
        if span == "*":
            start, stop = low, high
        else:
            start = _number(first, names)
            stop = _number(last, names) if dash else (high if slash else start)
        if step < 1 or not low <= start <= stop <= high:
            raise ValueError(part)
        found.update(range(start, stop + 1, step))
    return frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    return names[text] if text in names else int(text)
