"""The ISO calendar in whole numbers: days since 1970 and nanoseconds of a day, for all years that Arrow can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

DAY_NANOS: Final = 86_400_000_000_000
SECOND_NANOS: Final = 1_000_000_000

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December")  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def days_of(year: int, month: int, day: int) -> int:
    """The day since 1970 of a date. The day of the month may lie outside of the month."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def weekday(days: int) -> int:
    """1 is Monday, 7 is Sunday."""
    return (days + 3) % 7 + 1


def week_start(days: int) -> int:
    """The Sunday at which the week of a day begins. So do weeks in the locales without a country, in which ksqlDB's
    servers run; and the first week of a year or month is the one in which it begins."""
    return days - weekday(days) % 7


def week_year(days: int) -> int:
    """The year that a week counts for."""
    return civil(week_start(days) + 6)[0]


def week_of_year(days: int) -> int:
    return (week_start(days) - week_start(days_of(week_year(days), 1, 1))) // 7 + 1


def _week_of_month(days: int) -> int:
    return (week_start(days) - week_start(days - civil(days)[2] + 1)) // 7 + 1


def _day_of_year(days: int) -> int:
    return days - days_of(civil(days)[0], 1, 1) + 1


def _year_of_era(days: int) -> int:
    year = civil(days)[0]
    return year if year > 0 else 1 - year


DATE_FIELDS: Final[Mapping[str, Callable[[int], int]]] = {
    "Era": lambda days: int(civil(days)[0] > 0),
    "YearOfEra": _year_of_era,
    "Year": lambda days: civil(days)[0],
    "QuarterOfYear": lambda days: (civil(days)[1] + 2) // 3,
    "MonthOfYear": lambda days: civil(days)[1],
    "DayOfMonth": lambda days: civil(days)[2],
    "DayOfYear": _day_of_year,
    "DayOfWeek": weekday,
    "AlignedDayOfWeekInMonth": lambda days: (civil(days)[2] - 1) % 7 + 1,
    "WeekBasedYear": week_year,
    "WeekOfWeekBasedYear": week_of_year,
    "WeekOfMonth": _week_of_month,
    "LocalizedDayOfWeek": lambda days: weekday(days) % 7 + 1,
    "ModifiedJulianDay": lambda days: days + 40_587,
}
"""What a day since 1970 has, by the names that Java has for it."""

TIME_FIELDS: Final[Mapping[str, Callable[[int], int]]] = {
    "AmPmOfDay": lambda nanos: nanos // (DAY_NANOS // 2),
    "HourOfDay": lambda nanos: nanos // (3600 * SECOND_NANOS),
    "ClockHourOfDay": lambda nanos: nanos // (3600 * SECOND_NANOS) or 24,
    "HourOfAmPm": lambda nanos: nanos // (3600 * SECOND_NANOS) % 12,
    "ClockHourOfAmPm": lambda nanos: nanos // (3600 * SECOND_NANOS) % 12 or 12,
    "MinuteOfHour": lambda nanos: nanos // (60 * SECOND_NANOS) % 60,
    "SecondOfMinute": lambda nanos: nanos // SECOND_NANOS % 60,
    "NanoOfSecond": lambda nanos: nanos % SECOND_NANOS,
    "MilliOfDay": lambda nanos: nanos // 1_000_000,
    "NanoOfDay": lambda nanos: nanos,
}

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "Era": (0, 1),
    "YearOfEra": (1, 1_000_000_000),
    "Year": (-999_999_999, 999_999_999),
    "MonthOfYear": (1, 12),
    "DayOfMonth": (1, 31),
    "DayOfYear": (1, 366),
    "DayOfWeek": (1, 7),
    "LocalizedDayOfWeek": (1, 7),
    "AlignedDayOfWeekInMonth": (1, 7),
    "WeekOfWeekBasedYear": (1, 53),
    "WeekOfMonth": (0, 6),
    "AmPmOfDay": (0, 1),
    "HourOfDay": (0, 23),
    "ClockHourOfDay": (1, 24),
    "HourOfAmPm": (0, 11),
    "ClockHourOfAmPm": (1, 12),
    "MinuteOfHour": (0, 59),
    "SecondOfMinute": (0, 59),
    "NanoOfSecond": (0, SECOND_NANOS - 1),
    "MilliOfDay": (0, 86_399_999),
    "NanoOfDay": (0, DAY_NANOS - 1),
}


def checked(field: str, value: int) -> int:
    """The value, if the field can have it."""
    low, high = RANGES[field]
    if not low <= value <= high:
        raise ValueError(f"{field} {value} is not between {low} and {high}")
    return value
