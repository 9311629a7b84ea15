"""Dates and times become text by a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from potok.compat.java.dates.calendar import DATE_FIELDS, TIME_FIELDS
from potok.compat.java.dates.parts import (
    Fraction,
    GmtOffset,
    Literal,
    Name,
    Number,
    Offset,
    Padded,
    Part,
    Pattern,
    Section,
    ZoneId,
    ZoneName,
)
from potok.compat.java.dates.texts import name_of
from potok.compat.java.dates.zone_names import zone_name
from potok.compat.java.dates.zones import Zone


@dataclass(frozen=True, slots=True)
class Moment:
    """What is to be shown: a date, a time of day (in nanoseconds), or both in a zone, with the offset it has then."""

    days: int | None = None
    nanos: int | None = None
    zone: Zone | None = None
    offset: int = 0

    def field(self, name: str) -> int:
        if self.days is not None and name in DATE_FIELDS:
            return DATE_FIELDS[name](self.days)
        if self.nanos is not None and name in TIME_FIELDS:
            return TIME_FIELDS[name](self.nanos)
        raise NotThere(f"unsupported field: {name}")

    def zoned(self) -> Zone:
        if self.zone is None:
            raise NotThere("there is no time zone to show")
        return self.zone


class NotThere(ValueError):
    """A field that is asked for and that the value does not have: the hour of a date."""


def show(pattern: Pattern, moment: Moment) -> str:
    """The text of a moment; raises ValueError if it has not what the pattern shows."""
    return _all(pattern.parts, moment)


def _all(parts: Sequence[Part], moment: Moment) -> str:
    return "".join(_one(part, moment) for part in parts)


def _one(part: Part, moment: Moment) -> str:
    match part:
        case Literal():
            return part.text
        case Number():
            return _number(part, moment.field(part.field))
        case Fraction():
            return f"{moment.field('NanoOfSecond'):09d}"[: part.digits]
        case Name():
            return name_of(part.field, part.style, moment.field(part.field))
        case Offset() | GmtOffset():
            moment.zoned()
            return render_offset(part, moment.offset)
        case ZoneId():
            return moment.zoned().id
        case ZoneName():
            return zone_name(moment.zoned(), moment, full=part.full, generic=part.generic)
        case Section():
            try:
                return _all(part.parts, moment)
            except NotThere:
                return ""
        case Padded():
            return _padded(part, _one(part.part, moment))


def _number(part: Number, value: int) -> str:
    if part.two_digits:
        value = abs(value) % 100
    digits = str(abs(value))
    if len(digits) > part.most:
        raise ValueError(f"{part.field} {value} has more than {part.most} digits")
    if value < 0 and part.sign == "never":
        raise ValueError(f"{part.field} {value} cannot be shown: it is negative")
    plus = part.sign == "exceeds" and len(digits) > part.least
    return ("-" if value < 0 else "+" if plus else "") + digits.rjust(part.least, "0")


def render_offset(part: Offset | GmtOffset, offset: int) -> str:
    """A distance to UTC in seconds as a part of a pattern shows it."""
    return _offset(part, offset) if isinstance(part, Offset) else _gmt_offset(part, offset)


def _offset(part: Offset, offset: int) -> str:
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    colon = ":" if part.colon else ""
    rendered = f"{'-' if offset < 0 else '+'}{hours:02d}"
    visible = hours
    if part.minutes == "always" or minutes:
        rendered += f"{colon}{minutes:02d}"
        visible += minutes
        if part.seconds == "needed" and seconds:
            rendered += f"{colon}{seconds:02d}"
            visible += seconds
    return rendered if visible else part.zero


def _gmt_offset(part: GmtOffset, offset: int) -> str:
    if not offset:
        return "GMT"
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    rendered = f"GMT{'-' if offset < 0 else '+'}" + (f"{hours:02d}" if part.full else str(hours))
    if part.full or minutes or seconds:
        rendered += f":{minutes:02d}"
    return rendered + (f":{seconds:02d}" if seconds else "")


def _padded(part: Padded, rendered: str) -> str:
    if len(rendered) > part.width:
        raise ValueError(f"'{rendered}' has more than {part.width} characters")
    return rendered.rjust(part.width)
