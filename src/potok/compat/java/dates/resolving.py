"""What the fields of a text mean together: a date, a time of day, an instant.

As Java does by default: a day that a month does not have is its last day, hour 24 is midnight of the next day, and
fields that contradict each other are an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from potok.compat.java.dates.calendar import (
    DATE_FIELDS,
    DAY_NANOS,
    RANGES,
    SECOND_NANOS,
    TIME_FIELDS,
    checked,
    civil,
    days_of,
    is_leap,
    month_length,
    week_start,
)
from potok.compat.java.dates.parsing import Fields
from potok.compat.java.dates.zones import Zone, offset_zone


@dataclass(frozen=True, slots=True)
class Resolved:
    """A date and a time of day as far as they are known, and the fields that make up neither."""

    days: int | None
    nanos: int | None
    rest: dict[str, int]
    zone: Zone | None
    offset: int | None


def resolve(fields: Fields) -> Resolved:
    """Raises ValueError if the fields contradict each other."""
    values = dict(fields.values)
    offset = values.pop("OffsetSeconds", None)
    days = _date(values)
    nanos, next_day = _time(values)
    for field, value in values.items():
        if field in RANGES and field in TIME_FIELDS:
            checked(field, value)
        _agree(field, value, days, nanos)
    if next_day and days is not None and nanos is not None:
        days += 1
    return Resolved(days, nanos, values, fields.zone, offset)


def _agree(field: str, value: int, days: int | None, nanos: int | None) -> None:
    found = value
    if days is not None and field in DATE_FIELDS:
        found = DATE_FIELDS[field](days)
    elif nanos is not None and field in TIME_FIELDS:
        found = TIME_FIELDS[field](nanos)
    if found != value:
        raise ValueError(f"conflict found: {field} is {value} in the text, and {found} of the date or time there")


def _put(values: dict[str, int], field: str, value: int) -> None:
    if values.setdefault(field, value) != value:
        raise ValueError(f"conflict found: {field} is {values[field]} and {value}")


def _date(values: dict[str, int]) -> int | None:
    _year_of_era(values)
    if "LocalizedDayOfWeek" in values:
        from_sunday = checked("LocalizedDayOfWeek", values.pop("LocalizedDayOfWeek"))
        values["DayOfWeek"] = (from_sunday + 5) % 7 + 1
    if "ModifiedJulianDay" in values:
        return values.pop("ModifiedJulianDay") - 40_587
    if values.keys() >= {"Year", "MonthOfYear", "DayOfMonth"}:
        year = checked("Year", values.pop("Year"))
        month = checked("MonthOfYear", values.pop("MonthOfYear"))
        day = checked("DayOfMonth", values.pop("DayOfMonth"))
        return days_of(year, month, min(day, month_length(year, month)))
    if values.keys() >= {"Year", "DayOfYear"}:
        year = checked("Year", values.pop("Year"))
        day = checked("DayOfYear", values.pop("DayOfYear"))
        if day == 366 and not is_leap(year):
            raise ValueError(f"day 366 of {year}, which is not a leap year")
        return days_of(year, 1, 1) + day - 1
    return _date_by_week(values)


def _date_by_week(values: dict[str, int]) -> int | None:
    if values.keys() >= {"Year", "MonthOfYear", "WeekOfMonth", "DayOfWeek"}:
        first = days_of(values.pop("Year"), checked("MonthOfYear", values.pop("MonthOfYear")), 1)
        week = checked("WeekOfMonth", values.pop("WeekOfMonth"))
    elif "Year" not in values and values.keys() >= {"WeekBasedYear", "WeekOfWeekBasedYear", "DayOfWeek"}:
        first = days_of(values.pop("WeekBasedYear"), 1, 1)
        week = checked("WeekOfWeekBasedYear", values.pop("WeekOfWeekBasedYear"))
    else:
        return None
    day = checked("DayOfWeek", values.pop("DayOfWeek"))
    return week_start(first) + (week - 1) * 7 + day % 7


def _year_of_era(values: dict[str, int]) -> None:
    if "YearOfEra" not in values:
        if "Era" in values:
            checked("Era", values["Era"])
        return
    year = checked("YearOfEra", values.pop("YearOfEra"))
    era = values.pop("Era", None)
    if era is None:
        era = int(values.get("Year", 1) > 0)
    _put(values, "Year", year if era == 1 else 1 - year)


def _time(values: dict[str, int]) -> tuple[int | None, bool]:
    """The time of day, if the fields determine it, and whether it is that of the day after (24:00)."""
    _hours(values)
    if "NanoOfDay" in values:
        _split(values, checked("NanoOfDay", values.pop("NanoOfDay")))
    if "MilliOfDay" in values:
        millis = checked("MilliOfDay", values.pop("MilliOfDay"))
        given = checked("NanoOfSecond", values.get("NanoOfSecond", millis % 1000 * 1_000_000))
        # The nanoseconds may go on behind the milliseconds, but not differ from them.
        finer = given % 1_000_000 if given // 1_000_000 == millis % 1000 else 0
        _split(values, millis * 1_000_000 + finer)
    hour, minute = values.get("HourOfDay"), values.get("MinuteOfHour")
    second, nano = values.get("SecondOfMinute"), values.get("NanoOfSecond")
    if hour is None or (minute is None and (second, nano) != (None, None)) or (second is None and nano is not None):
        return None, False
    for field in ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond"):
        values.pop(field, None)
    if hour == 24 and not (minute or second or nano):
        return 0, True
    seconds = checked("HourOfDay", hour) * 3600 + checked("MinuteOfHour", minute or 0) * 60
    return (seconds + checked("SecondOfMinute", second or 0)) * SECOND_NANOS + checked("NanoOfSecond", nano or 0), False


def _split(values: dict[str, int], nanos: int) -> None:
    for field in ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond"):
        _put(values, field, TIME_FIELDS[field](nanos))


def _hours(values: dict[str, int]) -> None:
    for clock, field, midnight in (("ClockHourOfDay", "HourOfDay", 24), ("ClockHourOfAmPm", "HourOfAmPm", 12)):
        if clock in values:
            hour = values.pop(clock)
            _put(values, field, 0 if hour == 0 else checked(clock, hour) % midnight)
    if values.keys() >= {"AmPmOfDay", "HourOfAmPm"}:
        half = checked("AmPmOfDay", values.pop("AmPmOfDay"))
        _put(values, "HourOfDay", half * 12 + checked("HourOfAmPm", values.pop("HourOfAmPm")))


def instant_of(found: Resolved, default: Zone) -> int:
    """The nanoseconds since 1970 of what a text says. What it leaves open is as on 1970-01-01 at midnight; a text
    without a zone is in the default one."""
    days = found.days if found.days is not None else _partial_date(found.rest)
    nanos = found.nanos if found.nanos is not None else _partial_time(found.rest)
    local = days * DAY_NANOS + nanos
    if found.offset is not None and (found.zone is None or (found.days is not None and found.nanos is not None)):
        return local - offset_zone(found.offset).seconds * SECOND_NANOS
    return local - (found.zone or default).offset_of(local // SECOND_NANOS) * SECOND_NANOS


def _partial_date(rest: dict[str, int]) -> int:
    """1 January 1970 with some fields changed, one after the other, in Java's order."""
    days = 0
    for field in ("DayOfWeek", "AlignedDayOfWeekInMonth"):
        if field in rest:
            days += checked(field, rest[field]) - DATE_FIELDS[field](days)
    year, month, day = civil(days)
    if "DayOfMonth" in rest:
        day = checked("DayOfMonth", rest["DayOfMonth"])
        if day > month_length(year, month):
            raise ValueError(f"there is no day {day} in month {month}")
    if "DayOfYear" in rest:
        if checked("DayOfYear", rest["DayOfYear"]) == 366:
            raise ValueError("day 366 is not a day without the year")
        year, month, day = civil(days_of(year, 1, 1) + rest["DayOfYear"] - 1)
    if "MonthOfYear" in rest:
        month = checked("MonthOfYear", rest["MonthOfYear"])
        day = min(day, month_length(year, month))
    year = checked("Year", rest.get("Year", year))
    if rest.get("Era") == int(year <= 0):
        year = 1 - year
    return days_of(year, month, min(day, month_length(year, month)))


def _partial_time(rest: dict[str, int]) -> int:
    hour = rest.get("HourOfDay", rest.get("HourOfAmPm", 0) + 12 * rest.get("AmPmOfDay", 0))
    seconds = hour * 3600 + rest.get("MinuteOfHour", 0) * 60 + rest.get("SecondOfMinute", 0)
    return seconds * SECOND_NANOS + rest.get("NanoOfSecond", 0)
