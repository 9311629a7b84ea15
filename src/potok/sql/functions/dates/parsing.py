"""Functions that parse dates and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.compat.java.dates.calendar import DATE_FIELDS
from potok.compat.java.dates.parsing import read
from potok.compat.java.dates.parts import Literal, Number, Offset, Pattern
from potok.compat.java.dates.patterns import pattern_of
from potok.compat.java.dates.reading_columns import read_all
from potok.compat.java.dates.resolving import instant_of, resolve
from potok.compat.java.dates.simple_dates import read_date
from potok.compat.java.dates.zones import UTC, Zone, zone_named
from potok.sql.functions.constants import constant
from potok.sql.functions.dates.rows import Numbers, fill, numbers_to, valid_rows
from potok.sql.functions.function import Compute, Context, Overload, ScalarFunction, takes
from potok.sql.types import BIGINT, DATE, INT, TIME, TIMESTAMP, VARCHAR

_DAY_MS: Final = 86_400_000
_MOST_MS: Final = (2**63 - 1) // 1000
_NOT_OF_JAVA: Final = frozenset({"QuarterOfYear", "WeekBasedYear", "WeekOfWeekBasedYear", "WeekOfMonth"})
"""Fields that are not standard Java fields, which a time of day may not use."""


def _day(text: str, pattern: str) -> int:
    found = resolve(read(pattern_of(pattern), text))
    if found.days is None:
        raise ValueError(f"'{text}' is not a date in the pattern '{pattern}'")
    return _fits(found.days, 2**31 - 1, text)


def _day_of_simple(text: str, pattern: str) -> int:
    return _fits(read_date(pattern, text), 2**31 - 1, text)


def _time(text: str, pattern: str) -> int:
    found = resolve(read(pattern_of(pattern), text))
    if found.days is not None or found.rest.keys() & (DATE_FIELDS.keys() - _NOT_OF_JAVA):
        raise ValueError(f"the pattern '{pattern}' of a time contains fields of a date")
    if found.nanos is None:
        raise ValueError(f"'{text}' is not a time of day in the pattern '{pattern}'")
    return found.nanos // 1_000_000


def milliseconds_of(text: str, pattern: str, zone: str | None = None) -> int:
    """Return the milliseconds since 1970 of a text; raises ValueError. Missing fields are those of 1970-01-01T00:00,
    and a text without a zone is in the given zone, or in UTC.

    >>> milliseconds_of("1970-01-02", "yyyy-MM-dd")
    86400000
    """
    default = UTC if zone is None else zone_named(zone)
    instant = instant_of(resolve(read(pattern_of(pattern), text)), default)
    return _fits(instant // 1_000_000, _MOST_MS, text)


def _fits(value: int, most: int, text: str) -> int:
    if abs(value) > most:
        raise ValueError(f"'{text}' is too far away")
    return value


def milliseconds_of_all(texts: pa.Array, pattern: str, zone: Zone = UTC) -> tuple[Numbers, Numbers] | None:
    """Return which strings were parsed vectorized, and their milliseconds since 1970; None if the pattern needs
    row-by-row parsing."""
    parsed = pattern_of(pattern)
    found = read_all(parsed, texts)
    if found is None:
        return None
    offsets = found.offsets
    if not any(isinstance(part, Offset) for part in parsed.parts):
        offsets = zone.offsets(found.days * 86_400 + found.nanos // 1_000_000_000, local=True)
    return found.fits, found.days * _DAY_MS + found.nanos // 1_000_000 - offsets * 1000


def _days(texts: pa.Array, pattern: str, _: Zone) -> tuple[Numbers, Numbers] | None:
    parsed = pattern_of(pattern)
    found = read_all(parsed, texts) if _has(parsed, "MonthOfYear") else None
    return None if found is None else (found.fits, found.days)


def _simple_days(texts: pa.Array, pattern: str, _: Zone) -> tuple[Numbers, Numbers] | None:
    """Plain patterns mean the same to SimpleDateFormat, if no day exceeds its month."""
    parsed = pattern_of(pattern)
    plain = all(isinstance(part, Literal) or _is_plain(part) for part in parsed.parts)
    found = read_all(parsed, texts) if plain and _has(parsed, "MonthOfYear") else None
    return None if found is None else (found.fits & ~found.beyond, found.days)


def _is_plain(part: object) -> bool:
    return isinstance(part, Number) and part.field in ("YearOfEra", "MonthOfYear", "DayOfMonth")


def _times(texts: pa.Array, pattern: str, _: Zone) -> tuple[Numbers, Numbers] | None:
    parsed = pattern_of(pattern)
    found = read_all(parsed, texts) if _has(parsed, "HourOfDay") and not _has(parsed, "MonthOfYear") else None
    return None if found is None else (found.fits, found.nanos // 1_000_000)


def _has(pattern: Pattern, field: str) -> bool:
    return any(isinstance(part, Number) and part.field == field for part in pattern.parts)


def _reads(
    one: Callable[..., int],
    many: Callable[[pa.Array, str, Zone], tuple[Numbers, Numbers] | None],
    unit: int = 1,
) -> Compute:
    """Return a computation: vectorized if all rows have one pattern, the rest row by row. Column values are `unit`
    times as large as the results of the functions."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        valid = valid_rows(arguments, rows)
        fits, numbers = _at_once(arguments, many) or (np.zeros(rows, bool), np.zeros(rows, np.int64))
        left = np.flatnonzero(valid & ~fits)
        if len(left):
            values: list[Any] = numbers.tolist()
            found = [None] * rows
            fill(found, left, [column.to_pylist() for column in arguments], one, context)
            for row in left:
                valid[row] = found[row] is not None
                values[row] = found[row] or 0
            numbers = np.array(values, np.int64)
        return numbers_to(np.where(valid, numbers, 0) * unit, result, valid)

    return compute


def _at_once(
    arguments: Sequence[pa.Array], many: Callable[[pa.Array, str, Zone], tuple[Numbers, Numbers] | None]
) -> tuple[Numbers, Numbers] | None:
    pattern = constant(arguments[1])
    name = constant(arguments[2]) if len(arguments) > 2 else "UTC"
    if pattern is None or name is None:
        return None
    try:
        return many(arguments[0], pattern, zone_named(name))
    except ValueError:
        return None


def _function(
    name: str, summary: str, signature: str, result: pa.DataType, compute: Compute, example: str
) -> ScalarFunction:
    zone = "zone" in signature
    accept = (
        takes(VARCHAR, VARCHAR, VARCHAR, result=result, optional=1) if zone else takes(VARCHAR, VARCHAR, result=result)
    )
    return ScalarFunction(name, "date_time", summary, (Overload(signature, accept, compute),), example=example)


FUNCTIONS: Final = (
    _function(
        "PARSE_DATE",
        "The DATE that a text is, by a pattern of Java's SimpleDateFormat. Month and day may be missing.",
        "PARSE_DATE(text VARCHAR, pattern VARCHAR)",
        DATE,
        _reads(_day_of_simple, _simple_days),
        "PARSE_DATE('2021-12', 'yyyy-MM') -> 2021-12-01",
    ),
    _function(
        "PARSE_TIME",
        "The TIME that a text is, by a pattern of Java's DateTimeFormatter.",
        "PARSE_TIME(text VARCHAR, pattern VARCHAR)",
        TIME,
        _reads(_time, _times),
        "PARSE_TIME('1:25 PM', 'h:mm a') -> 13:25",
    ),
    _function(
        "PARSE_TIMESTAMP",
        "The TIMESTAMP that a text is, by a pattern of Java's DateTimeFormatter. A text without a time zone is in the"
        " one given, or in GMT.",
        "PARSE_TIMESTAMP(text VARCHAR, pattern VARCHAR[, zone VARCHAR])",
        TIMESTAMP,
        _reads(milliseconds_of, milliseconds_of_all, unit=1000),
        "PARSE_TIMESTAMP('2021-12-01T10:00+01:00', 'yyyy-MM-dd''T''HH:mmXXX') -> 2021-12-01T09:00:00.000",
    ),
    _function(
        "STRINGTODATE",
        "The number of days since 1970-01-01 of the date that a text is. PARSE_DATE gives a DATE.",
        "STRINGTODATE(text VARCHAR, pattern VARCHAR)",
        INT,
        _reads(_day, _days),
        "STRINGTODATE('2021-05-18', 'yyyy-MM-dd') -> 18765",
    ),
    _function(
        "STRINGTOTIMESTAMP",
        "The milliseconds since 1970 of the instant that a text is. PARSE_TIMESTAMP gives a TIMESTAMP.",
        "STRINGTOTIMESTAMP(text VARCHAR, pattern VARCHAR[, zone VARCHAR])",
        BIGINT,
        _reads(milliseconds_of, milliseconds_of_all),
        "STRINGTOTIMESTAMP('1970-01-01 00:00:01', 'yyyy-MM-dd HH:mm:ss') -> 1000",
    ),
)
