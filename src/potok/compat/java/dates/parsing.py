"""Parse text into fields by a pattern. resolving.py combines the fields to a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from potok.compat.java.dates.parsing_zones import gmt_offset, offset, zone_at
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
from potok.compat.java.dates.texts import readings
from potok.compat.java.dates.unparseable import Unparseable
from potok.compat.java.dates.zone_names import zones_by_name
from potok.compat.java.dates.zones import Zone


@dataclass(slots=True)
class Fields:
    """What a text says, field by field."""

    values: dict[str, int] = field(default_factory=dict)
    zone: Zone | None = None

    def put(self, name: str, value: int, at: int) -> None:
        if self.values.setdefault(name, value) != value:
            raise Unparseable(at)

    def copy(self) -> Fields:
        return Fields(dict(self.values), self.zone)


def read(pattern: Pattern, text: str) -> Fields:
    """The fields of a text. Case does not matter, widths do; raises ValueError."""
    fields = Fields()
    try:
        end = _all(pattern.parts, text, 0, fields)
    except Unparseable as error:
        raise ValueError(f"text '{text}' could not be parsed at index {error.at}") from None
    if end < len(text):
        raise ValueError(f"text '{text}' could not be parsed, unparsed text found at index {end}")
    return fields


def _all(parts: Sequence[Part], text: str, at: int, fields: Fields) -> int:
    for part in parts:
        at = _one(part, text, at, fields)
    return at


def _one(part: Part, text: str, at: int, fields: Fields) -> int:
    match part:
        case Literal():
            if not same(text[at : at + len(part.text)], part.text):
                raise Unparseable(at)
            return at + len(part.text)
        case Number():
            return _number(part, text, at, fields)
        case Fraction():
            return _fraction(part, text, at, fields)
        case Name():
            return _name(part, text, at, fields)
        case Offset() | GmtOffset():
            seconds, end = offset(part, text, at) if isinstance(part, Offset) else gmt_offset(part, text, at)
            fields.put("OffsetSeconds", seconds, at)
            return end
        case ZoneId() | ZoneName():
            names = zones_by_name(part.full) if isinstance(part, ZoneName) else {}
            fields.zone, end = zone_at(text, at, names)
            return end
        case Section():
            return _section(part, text, at, fields)
        case Padded():
            return _padded(part, text, at, fields)


def same(left: str, right: str) -> bool:
    return left == right or left.upper() == right.upper() or left.lower() == right.lower()


def _digits(text: str, at: int, most: int) -> int:
    """Where digits end that begin here."""
    end = at
    while end < min(at + most, len(text)) and "0" <= text[end] <= "9":
        end += 1
    return end


def _number(part: Number, text: str, at: int, fields: Fields) -> int:
    sign = text[at : at + 1]
    start = at
    if sign in ("+", "-") and sign:
        if part.sign == "never" or (part.sign == "normal" and sign == "+"):
            raise Unparseable(at)
        start += 1
    end = _digits(text, start, part.most + part.following)
    if part.following:
        end = start + min(end - start, max(part.least, end - start - part.following))
    width = end - start
    if width < part.least:
        raise Unparseable(start)
    value = int(text[start:end])
    if sign == "-":
        if value == 0:
            raise Unparseable(at)
        value = -value
    elif part.sign == "exceeds" and (width > part.least) != (sign == "+"):
        raise Unparseable(at)
    if part.two_digits:
        value += 2000
    fields.put(part.field, value, at)
    return end


def _fraction(part: Fraction, text: str, at: int, fields: Fields) -> int:
    end = _digits(text, at, part.digits)
    if end - at < part.digits:
        raise Unparseable(at)
    fields.put("NanoOfSecond", int(text[at:end].ljust(9, "0")), at)
    return end


def _name(part: Name, text: str, at: int, fields: Fields) -> int:
    for name, value in readings(part.field, part.style):
        if same(text[at : at + len(name)], name):
            fields.put(part.field, value, at)
            return at + len(name)
    raise Unparseable(at)


def _section(part: Section, text: str, at: int, fields: Fields) -> int:
    attempt = fields.copy()
    try:
        end = _all(part.parts, text, at, attempt)
    except Unparseable:
        return at
    fields.values, fields.zone = attempt.values, attempt.zone
    return end


def _padded(part: Padded, text: str, at: int, fields: Fields) -> int:
    end = at + part.width
    if end > len(text):
        raise Unparseable(at)
    start = at
    while start < end and text[start] == " ":
        start += 1
    if _one(part.part, text[:end], start, fields) != end:
        raise Unparseable(at)
    return end
