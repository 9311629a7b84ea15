"""Durations: small functions that make a `timedelta`, and text such as "5 MINUTES"."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from potok.errors import Location, TopologyError

_UNITS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"

Duration = timedelta | str | int | float
"""A `timedelta`, text such as "5 minutes", or a number of seconds."""


def milliseconds(n: float) -> timedelta:
    return timedelta(milliseconds=n)


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


def hours(n: float) -> timedelta:
    return timedelta(hours=n)


def days(n: float) -> timedelta:
    return timedelta(days=n)


_LONGEST_MS = 2**63


class NotADuration(TopologyError):
    """A value that is not a duration."""

    def __init__(self, given: object, message: str = "is not a duration", hint: str = "") -> None:
        rendered = f'"{given}"' if isinstance(given, str) else repr(given)
        hint = hint or 'write it like "5 minutes", "1h 30m" or seconds(30)'
        super().__init__(f"{rendered} {message}", hint=hint, at=Location.of_caller())


def to_ms(duration: Duration) -> int:
    """Return a duration, in any accepted spelling, in whole milliseconds."""
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    if isinstance(duration, str):
        return _parse(duration)
    if not isinstance(duration, int | float) or not -math.inf < duration < math.inf:
        raise NotADuration(duration)
    return _whole(duration * 1000, duration)


def to_seconds(duration: Duration) -> float:
    """Return a duration, in any accepted spelling, in seconds; a number is returned as it is."""
    return float(duration) if isinstance(duration, int | float) else to_ms(duration) / 1000


def show_ms(ms: int) -> str:
    """Return the shortest exact spelling of a duration: 3600000 is "1h"."""
    for suffix, unit in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if ms and ms % unit == 0:
            return f"{ms // unit}{suffix}"
    return f"{ms}ms"


def _parse(text: str) -> int:
    total = 0.0
    parts = re.findall(rf"({_NUMBER})\s*([A-Za-z]+)", text)
    if not parts or re.sub(rf"{_NUMBER}\s*[A-Za-z]+[\s,]*", "", text).strip():
        raise NotADuration(text)
    for number, word in parts:
        unit = word.lower()
        if unit not in _UNITS:
            unit = unit.removesuffix("s")
        if unit not in _UNITS:
            units = "use milliseconds, seconds, minutes, hours, days"
            raise NotADuration(word, "is not a unit of time", units)
        total += float(number) * _UNITS[unit]
    return _whole(total, text)


def _whole(ms: float, given: object) -> int:
    if abs(ms) >= _LONGEST_MS:
        raise NotADuration(given, "is too long", f"a duration has less than {_LONGEST_MS} milliseconds")
    return round(ms)
