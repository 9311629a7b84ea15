"""Read the texts that PostgreSQL prints for values of its types, one by one, including the unusual ones."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_LEAST, _MOST = -(2**63), 2**63 - 1
_DATE = re.compile(r"(\d+)-(\d\d)-(\d\d)")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$")
_INTERVAL = re.compile(r"(-?\+?\d+) (year|mon|day)s?")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")
_DAYS = {"year": 12 * 365.25 / 12, "mon": 365.25 / 12, "day": 1.0}


def date_days(text: str) -> int:
    """Return the days since 1970; infinity is the least or the greatest number of 32 bits."""
    if "infinity" in text:
        return -(2**31) if text.startswith("-") else 2**31 - 1
    found = _DATE.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a date")
    return _days(int(found[1]), int(found[2]), int(found[3]), before_christ=text.endswith("BC"))


def timestamp_us(text: str) -> int:
    """Return the microseconds since 1970; infinity is the least or the greatest number of 64 bits."""
    if "infinity" in text:
        return _LEAST if text.startswith("-") else _MOST
    day, _, rest = text.partition(" ")
    days = date_days(f"{day} BC" if text.endswith("BC") else day)
    return days * _DAY_US + time_us(rest)


def time_us(text: str) -> int:
    """Return the microseconds since midnight."""
    found = _TIME.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    return seconds * 1_000_000 + int((found[4] or "").ljust(6, "0"))


def timestamp_with_zone(text: str) -> str:
    """Return a time of UTC in ISO 8601; a year before Christ is negative, as in ISO 8601."""
    if "infinity" in text:
        return text
    if text.endswith(" BC"):
        year, rest = text.removesuffix(" BC").split("-", 1)
        text = f"-{int(year) - 1:04d}-{rest}" if int(year) > 1 else f"0000-{rest}"
    return re.sub(r"\+00$", "Z", text.replace(" ", "T", 1))


def time_with_zone(text: str) -> str:
    """Return a time of day with a zone, moved to UTC."""
    zone = _ZONE.search(text)
    if zone is None:
        raise ValueError(f"{text!r} is not a time with a zone")
    offset = timedelta(hours=int(zone[2]), minutes=int(zone[3] or 0), seconds=int(zone[4] or 0))
    us = time_us(text)
    midnight = datetime(2000, 1, 2, tzinfo=UTC) + timedelta(microseconds=us)
    moved = midnight - offset if zone[1] == "+" else midnight + offset
    return f"{moved.time().isoformat().removesuffix('000000').rstrip('.')}Z"


def interval_us(text: str) -> int:
    """Return the microseconds of an interval in the style `postgres`; a month has the 365.25th part of twelve years."""
    days = 0.0
    for number, unit in _INTERVAL.findall(text):
        days += int(number) * _DAYS[unit]
    total = round(days * _DAY_US)
    clock = _CLOCK.search(text)
    if clock is not None:
        seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + int(clock[4])
        us = seconds * 1_000_000 + int((clock[5] or "").ljust(6, "0"))
        total += -us if clock[1] == "-" else us
    return total


def bytes_of_hex(text: str) -> bytes:
    """Return the bytes of `\\x0a1b`."""
    if not text.startswith("\\x"):
        raise ValueError(f"{text!r} is not hexadecimal")
    return bytes.fromhex(text[2:])


def bits(text: str) -> bytes:
    """Return a bit string in bytes, little-endian."""
    return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")


def array_items(text: str) -> list[object]:
    """Return the texts in an array, nested as the array is; None for NULL."""
    if text.startswith("["):
        # The bounds of an array that does not begin with 1: [0:2]={1,2,3}
        text = text[text.index("=") + 1 :]
    found, end = _array_at(text, 0)
    if end != len(text):
        raise ValueError(f"{text!r} is not an array")
    return found


def _array_at(text: str, at: int) -> tuple[list[object], int]:
    items: list[object] = []
    at += 1
    if text[at] == "}":
        return items, at + 1
    while True:
        item: object
        if text[at] == "{":
            item, at = _array_at(text, at)
        elif text[at] == '"':
            item, at = _quoted_at(text, at + 1)
        else:
            end = next(index for index in range(at, len(text)) if text[index] in ",}")
            item, at = (None if text[at:end] == "NULL" else text[at:end]), end
        items.append(item)
        if text[at] == "}":
            return items, at + 1
        at += 1


def _quoted_at(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    while text[at] != '"':
        if text[at] == "\\":
            at += 1
        parts.append(text[at])
        at += 1
    return "".join(parts), at + 1


def _days(year: int, month: int, day: int, *, before_christ: bool) -> int:
    """Return the days since 1970 in the proleptic Gregorian calendar, also beyond the years that Python knows."""
    if before_christ:
        year = 1 - year
    cycles, rest = divmod(year - 1, 400)
    return date(rest + 1, month, day).toordinal() + cycles * 146_097 - _EPOCH
