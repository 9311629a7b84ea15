"""Offsets and zones in a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from potok.compat.java.dates.parts import GmtOffset, Offset
from potok.compat.java.dates.unparseable import Unparseable
from potok.compat.java.dates.zones import Zone, offset_zone, regions, zone_named

_LONGEST_ID: Final = 40
_GMT: Final = {
    True: re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?", re.ASCII),
    False: re.compile(r"([+-])(\d{1,2})(?::(\d\d)(?::(\d\d))?)?", re.ASCII),
}
_ID_OFFSET: Final = Offset("", "always", "needed", colon=True)


def offset(part: Offset, text: str, at: int) -> tuple[int, int]:
    """The seconds of an offset, and where it ends."""
    if part.zero and text[at : at + len(part.zero)].upper() == part.zero:
        return 0, at + len(part.zero)
    sign = text[at : at + 1]
    if sign not in ("+", "-") or not sign:
        raise Unparseable(at)
    hours, end = _two(text, at + 1, colon=False)
    if hours is None:
        raise Unparseable(at)
    minutes, end = _two(text, end, part.colon)
    if minutes is None and part.minutes == "always":
        raise Unparseable(at)
    seconds = None
    if minutes is not None and part.seconds == "needed":
        seconds, end = _two(text, end, part.colon)
    if hours > 18:
        raise ValueError(f"offset '{text[at:end]}' is more than 18 hours from UTC")
    total = hours * 3600 + (minutes or 0) * 60 + (seconds or 0)
    return (-total if sign == "-" else total), end


def _two(text: str, at: int, colon: bool) -> tuple[int | None, int]:
    """Two digits up to 59, behind a colon if there must be one; None, and nothing is taken, if they are not there."""
    start = at + colon
    digits = text[start : start + 2]
    if (colon and text[at:start] != ":") or len(digits) < 2 or not (digits.isascii() and digits.isdigit()):
        return None, at
    value = int(digits)
    return (value, start + 2) if value < 60 else (None, at)


def gmt_offset(part: GmtOffset, text: str, at: int) -> tuple[int, int]:
    """The seconds of `GMT+3` or `GMT+03:00`, and where it ends."""
    if text[at : at + 3].upper() != "GMT":
        raise Unparseable(at)
    found = _GMT[part.full].match(text, at + 3)
    if found is None:
        if text[at + 3 : at + 4] in ("+", "-") and text[at + 3 :]:
            raise Unparseable(at)
        return 0, at + 3
    hours, minutes, seconds = (int(group or 0) for group in found.groups()[1:])
    total = hours * 3600 + minutes * 60 + seconds
    return (-total if found[1] == "-" else total), found.end()


def zone_at(text: str, at: int, names: Mapping[str, str]) -> tuple[Zone, int]:
    """The zone whose id is at this position, or the longest of the given names in lower case, and where it ends."""
    if text[at : at + 1] in ("+", "-") and text[at:]:
        seconds, end = offset(_ID_OFFSET, text, at)
        return offset_zone(seconds), end
    for prefix in ("UTC", "GMT", "UT"):
        if text[at : at + len(prefix)].upper() == prefix:
            return _behind(prefix, text, at)
    longest = max(map(len, names), default=_LONGEST_ID)
    for end in range(min(len(text), at + max(longest, _LONGEST_ID)), at, -1):
        spelling = text[at:end].lower()
        name = regions().get(spelling) or names.get(spelling)
        if name is not None:
            return zone_named(name), end
    if text[at : at + 1].upper() == "Z":
        return offset_zone(0), at + 1
    raise Unparseable(at)


def _behind(prefix: str, text: str, at: int) -> tuple[Zone, int]:
    end = at + len(prefix)
    if prefix == "GMT" and text[end : end + 1] == "0":
        return zone_named("GMT0"), end + 1
    try:
        seconds, stop = offset(_ID_OFFSET, text, end)
    except Unparseable:
        return zone_named(prefix), end
    return offset_zone(seconds, prefix), stop
