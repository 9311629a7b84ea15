"""Cron expressions of five fields: minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from potok.errors import Location, TopologyError

_FIELDS = 5
_DAYS = {2: "1-31", 4: "0-7"}
"""The fields of the day of the month and of the week, with all of their values."""


class NotCron(TopologyError):
    """A text that is not a cron expression."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f'"{text}" is not a time for cron',
            hint='write minute hour day month weekday: "*/5 * * * *", "0 9 * * mon"',
            at=Location.of_caller(),
        )


def next_time(text: str, after: datetime) -> datetime | None:
    """Return the first time later than an instant, in its zone; None if there is none."""
    parts = text.split()
    if len(parts) != _FIELDS:
        raise NotCron(text)
    # If both days are given, either matches. As in Faust, a step counts as given; cron would treat its star as
    # not given.
    parts = [part.replace("*/", f"{_DAYS[at]}/") if at in _DAYS else part for at, part in enumerate(parts)]
    try:
        return next(CronSim(" ".join(parts), after), None)
    except CronSimError as error:
        raise NotCron(text) from error


def wait_for_cron(text: str, zone: Any = None) -> Callable[[], float | None]:
    """Return the seconds until the next time; None if there is none. UTC unless a zone is given."""
    local_zone = ZoneInfo(zone) if isinstance(zone, str) else zone or UTC
    next_time(text, datetime.now(local_zone))

    def wait_s() -> float | None:
        now = datetime.now(UTC)
        due = next_time(text, now.astimezone(local_zone))
        return None if due is None else (due - now).total_seconds()

    return wait_s
