"""Time zones by the names that Java's ZoneId knows: regions, offsets, and offsets behind UTC, GMT or UT."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

Numbers = np.ndarray[Any, Any]

_OFFSET: Final = re.compile(r"([+-])(\d|\d\d(?::?\d\d(?::?\d\d)?)?)")
_REGION: Final = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_NOT_REGIONS: Final = frozenset({"localtime", "posixrules", "Factory"})
_EPOCH: Final = datetime(1970, 1, 1)
_FIRST: Final = -62_135_596_800 + 86_400 * 366
_LAST: Final = 253_402_300_799 - 86_400 * 366
_CYCLE: Final = 146_097 * 86_400
_QUARTER_HOUR: Final = 900


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone: a fixed offset from UTC in seconds, or a region."""

    id: str
    seconds: int = 0
    region: ZoneInfo | None = None

    @property
    def is_offset(self) -> bool:
        """Whether its name is nothing but an offset."""
        return self.region is None and (self.id == "Z" or self.id[0] in "+-")

    def offset_at(self, instant: int) -> int:
        """The distance to UTC at an instant in seconds since 1970."""
        if self.region is None:
            return self.seconds
        moment = _EPOCH + timedelta(seconds=_within(instant))
        return _seconds(self.region.fromutc(moment.replace(tzinfo=self.region)))

    def offset_of(self, local: int) -> int:
        """The distance to UTC where clocks show a time. If they show it twice it is the first one; if they leap over
        it, it is the one before the leap: the time is then as much later as the leap is long."""
        if self.region is None:
            return self.seconds
        return _seconds((_EPOCH + timedelta(seconds=_within(local))).replace(tzinfo=self.region))

    def is_summer(self, instant: int) -> bool:
        """Whether clocks are put forward at an instant."""
        if self.region is None:
            return False
        moment = _EPOCH + timedelta(seconds=_within(instant))
        return bool(self.region.fromutc(moment.replace(tzinfo=self.region)).dst())

    def offsets(self, seconds: Numbers, *, local: bool) -> Numbers:
        """The same for many times at once: offsets change at most once in a quarter of an hour."""
        if self.region is None:
            return np.full(len(seconds), self.seconds, np.int64)
        of = self.offset_of if local else self.offset_at
        quarters, where = np.unique(seconds // _QUARTER_HOUR, return_inverse=True)
        starts = np.array([of(int(quarter) * _QUARTER_HOUR) for quarter in quarters], np.int64)
        ends = np.array([of(int(quarter + 1) * _QUARTER_HOUR - 1) for quarter in quarters], np.int64)
        found = starts[where]
        for row in np.flatnonzero((starts != ends)[where]):
            found[row] = of(int(seconds[row]))
        return found


UTC: Final = Zone("UTC")
GMT: Final = Zone("GMT")


def _seconds(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _within(seconds: int) -> int:
    """A time at which a region has the same offset, in the years that Python has."""
    if seconds > _LAST:
        return seconds - ((seconds - _LAST) // _CYCLE + 1) * _CYCLE
    return max(seconds, _FIRST)


_LONGEST_NAME: Final = 100


@lru_cache(maxsize=1000)
def zone_named(name: str) -> Zone:
    """The zone of a name; raises ValueError.

    >>> zone_named("GMT+3").id
    'GMT+03:00'
    """
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"unknown time zone '{name[:_LONGEST_NAME]}...'")
    if name == "Z" or name[:1] in ("+", "-"):
        return offset_zone(_offset(name))
    for prefix in ("UTC", "GMT", "UT"):
        if name == prefix:
            return Zone(name)
        if name.startswith((prefix + "+", prefix + "-")):
            return offset_zone(_offset(name[len(prefix) :]), prefix)
    if not _REGION.fullmatch(name) or name in _NOT_REGIONS or name.startswith(("posix/", "right/")):
        raise ValueError(f"unknown time zone '{name}'")
    try:
        return Zone(name, region=ZoneInfo(name))
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone '{name}'") from None


def offset_zone(seconds: int, prefix: str = "") -> Zone:
    """The zone of an offset, alone or behind UTC, GMT or UT."""
    if abs(seconds) > 18 * 3600:
        raise ValueError("a time zone is at most 18 hours from UTC")
    if seconds == 0:
        return Zone(prefix or "Z")
    hours, rest = divmod(abs(seconds), 3600)
    minutes, left = divmod(rest, 60)
    rendered = f"{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}" + (f":{left:02d}" if left else "")
    return Zone(prefix + rendered, seconds)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    found = _OFFSET.fullmatch(text)
    if found is None or text.count(":") not in (0, (len(text) - 1) // 3):
        raise ValueError(f"unknown time zone '{text}'")
    digits = found[2].replace(":", "").rjust(2, "0").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if minutes > 59 or seconds > 59:
        raise ValueError(f"unknown time zone '{text}'")
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if found[1] == "-" else 1)


@lru_cache(maxsize=1)
def regions() -> dict[str, str]:
    """The names of all regions, by their names in lower case."""
    return {name.lower(): name for name in available_timezones() - _NOT_REGIONS}
