"""Dates and times of a whole column become text: digits are computed as a matrix of bytes.

What does not fit that (a year of five digits, the name of a zone) is left to the work row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.compat.java.dates.calendar import SECOND_NANOS
from potok.compat.java.dates.formatting import render_offset
from potok.compat.java.dates.parts import Fraction, GmtOffset, Literal, Name, Number, Offset, Part, Pattern
from potok.compat.java.dates.texts import NAMES

Numbers = np.ndarray[Any, Any]

_HOUR: Final = 3600 * SECOND_NANOS
_ZERO: Final = ord("0")


class _Clock:
    """The fields of many moments, each computed when it is asked for."""

    def __init__(self, days: Numbers | None, nanos: Numbers | None, offsets: Numbers | None) -> None:
        self._days, self._nanos, self.offsets = days, nanos, offsets
        self._civil: dict[str, Numbers] = {}

    def field(self, name: str) -> Numbers | None:
        if self._days is not None and not self._civil:
            self._civil = _civil(self._days)
        if self._nanos is not None and name in _TIMES:
            return _TIMES[name](self._nanos)
        return self._civil.get(name)


def _civil(days: Numbers) -> dict[str, Numbers]:
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    year = years.astype(np.int64) + 1970
    return {
        "Year": year,
        "YearOfEra": year,
        "MonthOfYear": months.astype(np.int64) % 12 + 1,
        "DayOfMonth": days - months.astype("datetime64[D]").astype(np.int64) + 1,
        "DayOfYear": days - years.astype("datetime64[D]").astype(np.int64) + 1,
        "DayOfWeek": (days + 3) % 7 + 1,
    }


_TIMES: Final[Mapping[str, Callable[[Numbers], Numbers]]] = {
    "AmPmOfDay": lambda nanos: nanos // (12 * _HOUR),
    "HourOfDay": lambda nanos: nanos // _HOUR,
    "ClockHourOfDay": lambda nanos: (nanos // _HOUR + 23) % 24 + 1,
    "HourOfAmPm": lambda nanos: nanos // _HOUR % 12,
    "ClockHourOfAmPm": lambda nanos: (nanos // _HOUR + 11) % 12 + 1,
    "MinuteOfHour": lambda nanos: nanos // (60 * SECOND_NANOS) % 60,
    "SecondOfMinute": lambda nanos: nanos // SECOND_NANOS % 60,
    "NanoOfSecond": lambda nanos: nanos % SECOND_NANOS,
}


def show_all(
    pattern: Pattern, days: Numbers | None, nanos: Numbers | None, offsets: Numbers | None = None
) -> pa.Array | None:
    """The texts of many moments, or None if a part of the pattern needs the work row by row. `offsets` are the
    distances to UTC of moments in a zone."""
    clock = _Clock(days, nanos, offsets)
    rows = len(days if days is not None else nanos if nanos is not None else ())
    pieces: list[Numbers | pa.Array] = []
    for part in pattern.parts:
        piece = _render(part, clock, rows)
        if piece is None:
            return None
        pieces.append(piece)
    runs = [list(run) for _, run in groupby(pieces, lambda piece: isinstance(piece, np.ndarray))]
    columns = [column for run in runs for column in ([_joined(run, rows)] if isinstance(run[0], np.ndarray) else run)]
    if len(columns) > 1:
        return pc.binary_join_element_wise(*columns, "")
    return columns[0] if columns else _joined([], rows)


def _joined(pieces: Sequence[Numbers], rows: int) -> pa.Array:
    """Pieces of a fixed width side by side, as text."""
    width = sum(piece.shape[1] for piece in pieces)
    matrix = np.empty((rows, width), np.uint8)
    at = 0
    for piece in pieces:
        matrix[:, at : at + piece.shape[1]] = piece
        at += piece.shape[1]
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(matrix))


def _render(part: Part, clock: _Clock, rows: int) -> Numbers | pa.Array | None:
    """A part of all moments: bytes if they have one width, else text."""
    if isinstance(part, Literal):
        return np.frombuffer(part.text.encode(), np.uint8)[None, :]
    if isinstance(part, Fraction):
        nanos = clock.field("NanoOfSecond")
        return None if nanos is None else _digits(nanos // 10 ** (9 - part.digits), part.digits)
    if isinstance(part, Name):
        return _named(part, clock)
    if isinstance(part, Offset | GmtOffset) and clock.offsets is not None:
        distinct, where = np.unique(clock.offsets, return_inverse=True)
        return pa.array([render_offset(part, int(offset)) for offset in distinct], pa.string()).take(pa.array(where))
    values = clock.field(part.field) if isinstance(part, Number) else None
    return None if values is None or not isinstance(part, Number) else _numbered(part, values, rows)


def _numbered(part: Number, values: Numbers, rows: int) -> Numbers | pa.Array | None:
    least, most = (int(values.min()), int(values.max())) if rows else (1, 1)
    if least < (1 if part.field in ("Year", "YearOfEra") else 0) or part.least > _WIDEST:
        return None
    if part.two_digits:
        return _digits(values % 100, 2)
    if most < 10**part.least and (part.least > 1 or part.most == 1):
        return _digits(values, part.least)
    return pa.array(values).cast(pa.string()) if part.least == 1 and part.sign == "normal" else None


def _named(part: Name, clock: _Clock) -> Numbers | pa.Array | None:
    values = clock.field(part.field)
    if values is None:
        return None
    names = NAMES[part.field, part.style]
    chosen = values - (part.field != "AmPmOfDay")
    if len({len(name) for name in names}) > 1:
        return pa.array(names).take(pa.array(chosen))
    return np.asarray(np.array([list(name.encode()) for name in names], np.uint8)[chosen])


_WIDEST: Final = 4


@lru_cache(maxsize=_WIDEST)
def _table(width: int) -> Numbers:
    """The digits of every number of this width."""
    numbers = np.arange(10**width)[:, None]
    return (numbers // 10 ** np.arange(width - 1, -1, -1) % 10 + _ZERO).astype(np.uint8)


def _digits(values: Numbers, width: int) -> Numbers:
    if width > _WIDEST:
        step = 10**_WIDEST
        return np.concatenate([_digits(values // step, width - _WIDEST), _digits(values % step, _WIDEST)], axis=1)
    return np.asarray(_table(width)[values])
