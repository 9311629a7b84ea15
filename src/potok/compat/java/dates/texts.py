"""How Java names months, weekdays and eras in English, and which numbers these names mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from potok.compat.java.dates.calendar import MONTHS, WEEKDAYS

_QUARTERS: Final = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")

NAMES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("MonthOfYear", "full"): MONTHS,
    ("MonthOfYear", "short"): tuple(name[:3] for name in MONTHS),
    ("MonthOfYear", "narrow"): tuple(name[0] for name in MONTHS),
    ("DayOfWeek", "full"): WEEKDAYS,
    ("DayOfWeek", "short"): tuple(name[:3] for name in WEEKDAYS),
    ("DayOfWeek", "narrow"): tuple(name[0] for name in WEEKDAYS),
    ("QuarterOfYear", "full"): _QUARTERS,
    ("QuarterOfYear", "short"): ("Q1", "Q2", "Q3", "Q4"),
    ("QuarterOfYear", "narrow"): ("1", "2", "3", "4"),
    ("Era", "full"): ("Before Christ", "Anno Domini"),
    ("Era", "short"): ("BC", "AD"),
    ("Era", "narrow"): ("B", "A"),
    ("AmPmOfDay", "short"): ("AM", "PM"),
}

_FROM_ZERO: Final = frozenset({"Era", "AmPmOfDay"})


def name_of(field: str, style: str, value: int) -> str:
    return NAMES[field, style][value - (field not in _FROM_ZERO)]


@lru_cache(maxsize=64)
def readings(field: str, style: str) -> tuple[tuple[str, int], ...]:
    """The names with the values they mean, the longest first. A letter that stands for several months means the last of
    them, as to Java."""
    meanings = {name: number for number, name in enumerate(NAMES[field, style], int(field not in _FROM_ZERO))}
    return tuple(sorted(meanings.items(), key=lambda pair: -len(pair[0])))
