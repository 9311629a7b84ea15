"""A date pattern as a list of parts: what Java's DateTimeFormatterBuilder makes of the same text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

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


class BadPattern(ValueError):
    """A text that is not a date pattern."""


LONGEST_PATTERN, DEEPEST_SECTION = 1_000, 20


def check_length(text: str) -> None:
    """Refuse a very long date pattern, because it is evaluated for every row."""
    if len(text) > LONGEST_PATTERN:
        raise BadPattern(f"a date pattern has at most {LONGEST_PATTERN:,} characters, not {len(text):,}")


_NUMBERS: Final = {
    "d": "DayOfMonth",
    "h": "ClockHourOfAmPm",
    "H": "HourOfDay",
    "k": "ClockHourOfDay",
    "K": "HourOfAmPm",
    "m": "MinuteOfHour",
    "s": "SecondOfMinute",
}
_LONG_NUMBERS: Final = {"A": "MilliOfDay", "n": "NanoOfSecond", "N": "NanoOfDay", "g": "ModifiedJulianDay"}
_YEARS: Final = {"u": "Year", "y": "YearOfEra"}
_WORDS: Final = {
    "M": "MonthOfYear",
    "L": "MonthOfYear",
    "Q": "QuarterOfYear",
    "q": "QuarterOfYear",
    "E": "DayOfWeek",
    "e": "DayOfWeek",
    "c": "DayOfWeek",
}
_WEEKS: Final = {"Y": "WeekBasedYear", "w": "WeekOfWeekBasedYear", "W": "WeekOfMonth"}
_STYLES: Final = {3: "short", 4: "full", 5: "narrow"}
_OFFSETS: Final = {
    1: ("needed", "never", False),
    2: ("always", "never", False),
    3: ("always", "never", True),
    4: ("always", "needed", False),
    5: ("always", "needed", True),
}


@lru_cache(maxsize=1000)
def pattern_of(text: str) -> Pattern:
    """The pattern that a text is; raises `BadPattern`.

    >>> pattern_of("HH:mm").parts[1]
    Literal(text=':')
    """
    check_length(text)
    return Pattern(text, _Reader(text).read())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> tuple[Part, ...]:
        parts = self._section(depth=0)
        return tuple(parts)

    def _section(self, depth: int) -> list[Part]:
        if depth > DEEPEST_SECTION:
            raise BadPattern(f"pattern '{self._text}' has more than {DEEPEST_SECTION} nested [")
        parts: list[Part] = []
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter.isascii() and letter.isalpha():
                append(parts, self._letters())
                continue
            self._at += 1
            if letter == "'":
                parts.append(Literal(self._quoted()))
            elif letter == "[":
                parts.append(Section(tuple(self._section(depth + 1))))
            elif letter == "]":
                if depth == 0:
                    raise BadPattern(f"pattern '{self._text}' has a ] without a [")
                return parts
            elif letter in "{}#":
                raise BadPattern(f"pattern '{self._text}' has a {letter}, which is reserved")
            else:
                parts.append(Literal(letter))
        return parts

    def _quoted(self) -> str:
        start = self._at
        while self._at < len(self._text):
            if self._text[self._at] == "'":
                if self._text[self._at + 1 : self._at + 2] != "'":
                    break
                self._at += 1
            self._at += 1
        else:
            raise BadPattern(f"pattern '{self._text}' ends inside a quoted text")
        self._at += 1
        return self._text[start : self._at - 1].replace("''", "'") or "'"

    def _run(self) -> tuple[str, int]:
        letter, start = self._text[self._at], self._at
        while self._text[self._at : self._at + 1] == letter:
            self._at += 1
        return letter, self._at - start

    def _letters(self) -> Part:
        letter, count = self._run()
        if letter != "p":
            return _part(letter, count)
        follower = self._text[self._at : self._at + 1]
        if not (follower.isascii() and follower.isalpha()):
            raise BadPattern("pad letter p must precede another letter")
        return Padded(_part(*self._run()), count)


def append(parts: list[Part], part: Part) -> None:
    """Append a part. The widths of adjacent numbers separate them: only the first may vary."""
    width = _fixed_width(part)
    at = len(parts)
    while at and _fixed_width(parts[at - 1]) and not _leads(parts, at - 1):
        at -= 1
    lead = parts[at - 1] if at else None
    if isinstance(lead, Number) and isinstance(part, Number | Fraction):
        parts[at - 1] = replace(lead, following=lead.following + width if width else 0)
    parts.append(part)


def _leads(parts: Sequence[Part], at: int) -> bool:
    """Whether a fixed part is the first of its row of numbers."""
    return at == 0 or not isinstance(parts[at - 1], Number | Fraction)


def _fixed_width(part: Part) -> int:
    """How many digits a part always has; 0 if that varies or it is not a number."""
    if isinstance(part, Fraction):
        return part.digits
    fixed = isinstance(part, Number) and part.least == part.most and part.sign == "never"
    return part.least if fixed and isinstance(part, Number) else 0


def _part(letter: str, count: int) -> Part:
    if letter in _NUMBERS:
        return _plain(_NUMBERS[letter], letter, count)
    if letter in _YEARS:
        if count == 2:
            return Number(_YEARS[letter], 2, 2, two_digits=True)
        return Number(_YEARS[letter], _at_most(letter, count, 19), 19, "normal" if count < 4 else "exceeds")
    if letter in _WORDS:
        return _word(letter, count)
    if letter in _LONG_NUMBERS:
        sign = "normal" if letter == "g" else "never"
        return Number(_LONG_NUMBERS[letter], _at_most(letter, count, 19), 19, sign)
    if letter in _WEEKS:
        return _week(letter, count)
    if letter in "aGSFD":
        return _other(letter, count)
    if letter in "zVvZOXx":
        return _zone(letter, count)
    raise BadPattern(f"unknown pattern letter: {letter}")


def _at_most(letter: str, count: int, most: int) -> int:
    if count > most:
        raise BadPattern(f"too many pattern letters: {letter * count}")
    return count


def _plain(field: str, letter: str, count: int) -> Number:
    if _at_most(letter, count, 2) == 1:
        return Number(field, 1, 19, "normal")
    return Number(field, 2, 2)


def _word(letter: str, count: int) -> Part:
    field = _WORDS[letter]
    if letter in "ec" and count < 3:
        if letter == "c" and count == 2:
            raise BadPattern("invalid pattern cc")
        return Number("LocalizedDayOfWeek", count, count)
    if letter == "E" and count < 3:
        return Name(field, "short")
    if count < 3:
        return _plain(field, letter, count)
    return Name(field, _STYLES[_at_most(letter, count, 5)])


def _week(letter: str, count: int) -> Number:
    if letter == "Y":
        if count == 2:
            return Number("WeekBasedYear", 2, 2, two_digits=True)
        return Number("WeekBasedYear", _at_most(letter, count, 19), 19, "normal" if count < 4 else "exceeds")
    return Number(_WEEKS[letter], _at_most(letter, count, 1 if letter == "W" else 2), 1 if letter == "W" else 2)


def _other(letter: str, count: int) -> Part:
    if letter == "a":
        _at_most(letter, count, 1)
        return Name("AmPmOfDay", "short")
    if letter == "G":
        return Name("Era", _STYLES[max(3, _at_most(letter, count, 5))])
    if letter == "S":
        return Fraction(_at_most(letter, count, 9))
    if letter == "F":
        _at_most(letter, count, 1)
        return Number("AlignedDayOfWeekInMonth", 1, 19, "normal")
    if _at_most(letter, count, 3) == 1:
        return Number("DayOfYear", 1, 19, "normal")
    return Number("DayOfYear", count, 3)


def _zone(letter: str, count: int) -> Part:
    allowed = {"z": (1, 2, 3, 4), "V": (2,), "v": (1, 4), "Z": (1, 2, 3, 4, 5), "O": (1, 4)}.get(
        letter, (1, 2, 3, 4, 5)
    )
    if count not in allowed:
        counts = ", ".join(map(str, allowed))
        raise BadPattern(f"pattern letter {letter} occurs {count} times, but its count may be {counts}")
    if letter in "zv":
        return ZoneName(full=count == 4, generic=letter == "v")
    if letter == "V":
        return ZoneId()
    if letter == "O" or (letter == "Z" and count == 4):
        return GmtOffset(full=count == 4)
    if letter == "Z":
        return Offset("+0000", *_OFFSETS[2]) if count < 4 else Offset("Z", *_OFFSETS[5])
    zero = "Z" if letter == "X" else "+00" if count == 1 else "+0000" if count % 2 == 0 else "+00:00"
    return Offset(zero, *_OFFSETS[count])
