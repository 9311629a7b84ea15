"""Text becomes a date by a pattern of Java's SimpleDateFormat, which is what PARSE_DATE reads.

It is lenient: digits may be fewer or more than letters, a day 30 in February is one in March, text behind the date is
not looked at, and what the pattern leaves out is as in 1970-01-01T00:00 UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from potok.compat.java.dates.calendar import DAY_NANOS, SECOND_NANOS, civil, days_of
from potok.compat.java.dates.parsing import same
from potok.compat.java.dates.parsing_zones import offset, zone_at
from potok.compat.java.dates.parts import Offset
from potok.compat.java.dates.patterns import BadPattern, check_length
from potok.compat.java.dates.texts import NAMES
from potok.compat.java.dates.unparseable import Unparseable
from potok.compat.java.dates.zone_names import zones_by_name
from potok.compat.java.dates.zones import UTC, Zone

_NUMBERS: Final = "yYMLdDHkKhmsSu"
_ZONES: Final = "XZz"
_ISO_OFFSETS: Final = {
    1: Offset("Z", "never", "never", colon=False),
    2: Offset("Z", "always", "never", colon=False),
    3: Offset("Z", "always", "never", colon=True),
}


def read_date(pattern: str, text: str) -> int:
    """The day since 1970 that a text is; raises ValueError, also if it is not midnight in UTC."""
    runs = _runs(pattern)
    fields: dict[str, int] = {}
    zone: Zone = UTC
    at = 0
    try:
        for index, (letter, width) in enumerate(runs):
            if not letter:
                at = _literal(str(width), text, at)
            elif letter in _ZONES:
                zone, at = _zone(letter, int(width), text, at)
            else:
                follower = runs[index + 1] if index + 1 < len(runs) else ("", "")
                at = _field(letter, int(width), text, at, fields, adjacent=_is_number(*follower))
    except Unparseable as error:
        raise ValueError(f"text '{text}' could not be parsed at index {error.at}") from None
    day, rest = divmod(_instant(fields, zone), DAY_NANOS)
    if rest:
        raise ValueError(f"'{text}' is not a date: it has a time of day")
    return day


Run = tuple[str, int | str]
"""A letter and its count, or no letter and a text."""


@lru_cache(maxsize=1000)
def _runs(pattern: str) -> tuple[Run, ...]:
    check_length(pattern)
    runs: list[Run] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter.isascii() and letter.isalpha():
            end = at
            while pattern[end : end + 1] == letter:
                end += 1
            if letter not in _NUMBERS + _ZONES + "EGa":
                raise BadPattern(f"unknown pattern letter: {letter}")
            runs.append((letter, end - at))
        else:
            literal, end = _quoted(pattern, at) if letter == "'" else (letter, at + 1)
            runs.append(("", literal))
        at = end
    return tuple(runs)


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at : at + 2] == "''":
        return "'", at + 2
    end = at + 1
    while pattern[end : end + 1] not in ("'", "") or pattern[end : end + 2] == "''":
        end += 2 if pattern[end] == "'" else 1
    if end >= len(pattern):
        raise BadPattern(f"pattern '{pattern}' ends inside a quoted text")
    return pattern[at + 1 : end].replace("''", "'"), end + 1


def _is_number(letter: str, width: int | str) -> bool:
    return bool(letter) and letter in _NUMBERS and not (letter in "ML" and int(width) > 2)


def _literal(literal: str, text: str, at: int) -> int:
    if not text.startswith(literal, at):
        raise Unparseable(at)
    return at + len(literal)


def _zone(letter: str, width: int, text: str, at: int) -> tuple[Zone, int]:
    if letter == "X" or (letter == "Z" and width == 2):
        if width > 3:
            raise BadPattern(f"too many pattern letters: {letter * width}")
        seconds, end = offset(_ISO_OFFSETS[3 if letter == "Z" else width], text, at)
        return Zone("", seconds), end
    if text[at : at + 1] in ("+", "-") and text[at:]:
        seconds, end = offset(_ISO_OFFSETS[2], text, at)
        return Zone("", seconds), end
    try:
        return zone_at(text, at, zones_by_name(full=True))
    except Unparseable:
        return zone_at(text, at, zones_by_name(full=False))


def _field(letter: str, width: int, text: str, at: int, fields: dict[str, int], *, adjacent: bool) -> int:
    if not _is_number(letter, width):
        return _name(letter, text, at, fields)
    if not adjacent:
        while text[at : at + 1].isspace():
            at += 1
    end = at
    while end < len(text) and text[end].isascii() and text[end].isdigit() and (not adjacent or end < at + width):
        end += 1
    if end == at:
        raise Unparseable(at)
    value = int(text[at:end])
    if letter in "yY" and width <= 2 and value < 100:
        # Java takes the hundred years around the clock of the machine; a replay must give the same date forever.
        value += 2000
    fields["y" if letter == "Y" or (letter == "u" and width > 1) else "M" if letter == "L" else letter] = value
    return end


def _name(letter: str, text: str, at: int, fields: dict[str, int]) -> int:
    field, first = {"M": ("MonthOfYear", 1), "L": ("MonthOfYear", 1), "E": ("DayOfWeek", 1), "G": ("Era", 0)}.get(
        letter, ("AmPmOfDay", 0)
    )
    styles: Sequence[str] = ("full", "short") if field != "AmPmOfDay" else ("short",)
    for style in styles:
        for value, name in enumerate(NAMES[field, style], first):
            if same(text[at : at + len(name)], name):
                fields["M" if letter == "L" else letter] = value
                return at + len(name)
    raise Unparseable(at)


def _instant(fields: dict[str, int], zone: Zone) -> int:
    get: Callable[[str, int], int] = fields.get
    year = get("y", 1970) if get("G", 1) else 1 - get("y", 1970)
    if "D" in fields and not fields.keys() & {"M", "d"}:
        days = days_of(year, 1, 1) + fields["D"] - 1
    else:
        years, month = divmod(get("M", 1) - 1, 12)
        days = days_of(year + years, month + 1, 1) + get("d", 1) - 1
    half = get("h", get("K", 0)) % 12 + 12 * get("a", 0)
    hour = get("H", get("k", half) % 24)
    local = days * 86_400 + hour * 3600 + get("m", 0) * 60 + get("s", 0)
    if abs(civil(local // 86_400)[0]) > 999_999:
        raise ValueError("a date so far away does not fit into DATE")
    return (local - zone.offset_of(local)) * SECOND_NANOS + get("S", 0) * 1_000_000
