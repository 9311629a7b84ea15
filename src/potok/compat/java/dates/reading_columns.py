"""Texts of a whole column become dates and times, by patterns in which every part has a fixed width: a matrix of bytes.

A text of another length, or with anything unusual in it, is left to the work row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.compat.java.dates.calendar import SECOND_NANOS
from potok.compat.java.dates.parts import Fraction, Literal, Number, Offset, Pattern

Numbers = np.ndarray[Any, Any]

_ZERO: Final = ord("0")


@dataclass(frozen=True, slots=True)
class ReadAll:
    """For many texts: whether each was read, its day since 1970, its nanosecond of the day, the seconds to UTC that it
    names, and whether the day it names is none of its month, so that the last one was taken."""

    fits: Numbers
    days: Numbers
    nanos: Numbers
    offsets: Numbers
    beyond: Numbers

    def or_else(self, other: ReadAll) -> ReadAll:
        """These where they were read, and the others elsewhere."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in dataclass_fields(self))
        return ReadAll(*(np.where(self.fits, mine, others) for mine, others in pairs))


def read_all(pattern: Pattern, texts: pa.Array) -> ReadAll | None:
    """Many texts at once; None if the pattern is not of this kind. What is not read may be read row by row, or not be
    right at all."""
    found = _read(pattern, texts, zero=True)
    if not any(isinstance(part, Offset) for part in pattern.parts) or (found is not None and found.fits.all()):
        return found
    other = _read(pattern, texts, zero=False)
    return found.or_else(other) if found is not None and other is not None else found or other


def _read(pattern: Pattern, texts: pa.Array, *, zero: bool) -> ReadAll | None:
    """All texts in which an offset is a Z (`zero`), or in which it is in digits."""
    widths = _widths(pattern, zero)
    if widths is None:
        return None
    matrix, fits = _matrix(texts, sum(widths))
    fields: dict[str, Numbers] = {}
    at = 0
    for part, wide in zip(pattern.parts, widths, strict=True):
        piece = matrix[:, at : at + wide]
        at += wide
        if isinstance(part, Literal) or (isinstance(part, Offset) and zero):
            expected = part.text if isinstance(part, Literal) else part.zero
            fits &= (piece == np.frombuffer(expected.encode(), np.uint8)).all(axis=1)
        elif isinstance(part, Offset):
            fields["OffsetSeconds"] = _offset(part, piece, fits)
        elif isinstance(part, Fraction):
            fields["NanoOfSecond"] = _number(piece, fits) * 10 ** (9 - wide)
        elif isinstance(part, Number):
            fields[part.field] = _number(piece, fits)
    return _combined(fields, fits)


def _number(piece: Numbers, fits: Numbers) -> Numbers:
    """The numbers that digits are; rows with anything else do not fit."""
    digits = piece - np.uint8(_ZERO)
    fits &= (digits <= 9).all(axis=1)
    number = np.zeros(len(piece), np.int64)
    for index in range(piece.shape[1]):
        number = number * 10 + digits[:, index]
    return number


def _offset(part: Offset, piece: Numbers, fits: Numbers) -> Numbers:
    """The seconds of `+01:30` or `+0130`."""
    hours, minutes = _number(piece[:, 1:3], fits), _number(piece[:, -2:], fits)
    fits &= ((piece[:, 0] == ord("+")) | (piece[:, 0] == ord("-"))) & (hours < 18) & (minutes < 60)
    if part.colon:
        fits &= piece[:, 3] == ord(":")
    seconds = hours * 3600 + minutes * 60
    return np.asarray(np.where(piece[:, 0] == ord("-"), -seconds, seconds))


_READ: Final = {
    "YearOfEra": 4,
    "Year": 4,
    "MonthOfYear": 2,
    "DayOfMonth": 2,
    "HourOfDay": 2,
    "MinuteOfHour": 2,
    "SecondOfMinute": 2,
}
_COMPLETE: Final = ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond")


def _widths(pattern: Pattern, zero: bool) -> list[int] | None:
    """How wide each part is, if all are fixed, none comes twice, and they determine a date, a time of day or both."""
    widths: list[int] = []
    seen: list[str] = []
    for part in pattern.parts:
        if isinstance(part, Literal) and part.text.isascii() and not part.text[0].isdigit():
            widths.append(len(part.text))
        elif isinstance(part, Offset) and (part.zero == "Z" if zero else part.minutes == "always"):
            widths.append(1 if zero else 5 + part.colon)
            seen.append("OffsetSeconds")
        elif isinstance(part, Number) and _READ.get(part.field) == part.least and not part.two_digits:
            widths.append(part.least)
            seen.append("Year" if part.field == "YearOfEra" else part.field)
        elif isinstance(part, Fraction):
            widths.append(part.digits)
            seen.append("NanoOfSecond")
        else:
            return None
    date = {"Year", "MonthOfYear", "DayOfMonth"} & set(seen)
    clock = [field in seen for field in _COMPLETE]
    is_complete = len(date) in (0, 3) and clock == sorted(clock, reverse=True) and bool(seen)
    return widths if is_complete and len(set(seen)) == len(seen) else None


def _matrix(texts: pa.Array, width: int) -> tuple[Numbers, Numbers]:
    """The bytes of texts, a row for each, and which of the texts have this width."""
    rows = len(texts)
    offsets = np.frombuffer(texts.buffers()[1], np.int32, rows + 1, texts.offset * 4) if rows else np.zeros(1, np.int32)
    fits = np.diff(offsets) == width
    if texts.null_count:
        fits &= texts.is_valid().to_numpy(zero_copy_only=False)
    data = texts.buffers()[2] if rows else None
    if data is None or not fits.any():
        return np.zeros((rows, width), np.uint8), fits
    content = np.frombuffer(data, np.uint8)
    if fits.all():
        return content[offsets[0] : offsets[0] + rows * width].reshape(rows, width), fits
    matrix = np.zeros((rows, width), np.uint8)
    matrix[fits] = content[offsets[:-1][fits][:, None] + np.arange(width)]
    return matrix, fits


def _combined(fields: dict[str, Numbers], fits: Numbers) -> ReadAll:
    zero = np.zeros(len(fits), np.int64)
    days, beyond = zero, np.zeros(len(fits), bool)
    if "MonthOfYear" in fields:
        year = fields.get("Year", fields.get("YearOfEra", zero))
        month, day = fields["MonthOfYear"], fields["DayOfMonth"]
        fits = fits & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        fits &= (year >= 1) | ("Year" in fields)
        first = ((year - 1970) * 12 + np.where(fits, month, 1) - 1).astype("datetime64[M]")
        start = first.astype("datetime64[D]").astype(np.int64)
        length = (first + 1).astype("datetime64[D]").astype(np.int64) - start
        days, beyond = start + np.minimum(day, length) - 1, day > length
    hour, minute = fields.get("HourOfDay", zero), fields.get("MinuteOfHour", zero)
    second = fields.get("SecondOfMinute", zero)
    fits = fits & (hour <= 23) & (minute <= 59) & (second <= 59)
    nanos = (hour * 3600 + minute * 60 + second) * SECOND_NANOS + fields.get("NanoOfSecond", zero)
    return ReadAll(fits, days, nanos, fields.get("OffsetSeconds", zero), beyond)
