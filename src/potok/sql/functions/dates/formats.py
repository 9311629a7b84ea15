"""Functions that format dates and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.compat.java.dates.columns import show_all
from potok.compat.java.dates.formatting import Moment, show
from potok.compat.java.dates.parts import GmtOffset, Literal, Offset, Part, Pattern, ZoneId, ZoneName
from potok.compat.java.dates.patterns import pattern_of
from potok.compat.java.dates.zones import GMT, UTC, Zone, zone_named
from potok.sql.functions.constants import constant
from potok.sql.functions.dates.rows import Numbers, fill, masked, numbers_of, valid_rows
from potok.sql.functions.function import Context, Overload, ScalarFunction, takes
from potok.sql.types import BIGINT, DATE, INT, TIME, TIMESTAMP, VARCHAR

_DAY_MS: Final = 86_400_000


def _date(value: int, _: Zone) -> Moment:
    return Moment(days=value)


def _time(value: int, _: Zone) -> Moment:
    return Moment(nanos=value * 1_000_000)


def _instant(value: int, zone: Zone) -> Moment:
    offset = zone.offset_at(value // 1000)
    days, rest = divmod(value + offset * 1000, _DAY_MS)
    return Moment(days, rest * 1_000_000, zone, offset)


Moments = tuple[Numbers | None, Numbers | None, Numbers | None]
"""Days since 1970, nanoseconds of the day, and the UTC offset in seconds."""


def _dates(values: Numbers, _: Zone) -> Moments:
    return values, None, None


def _times(values: Numbers, _: Zone) -> Moments:
    return None, values * 1_000_000, None


def _instants(values: Numbers, zone: Zone) -> Moments:
    offsets = zone.offsets(values // 1000, local=False)
    local = values + offsets * 1000
    return local // _DAY_MS, local % _DAY_MS * 1_000_000, offsets


def _formats(
    moment: Callable[[int, Zone], Moment],
    moments: Callable[[Numbers, Zone], Moments],
    zone: Zone = UTC,
    unit: int = 1,
) -> Callable[[Sequence[Any], int, pa.DataType, Context], pa.Array]:
    """Return a computation: vectorized if all rows have one pattern, else row by row. `zone` is the default time zone;
    values are `unit` times as large as their days or milliseconds."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        numbers = numbers_of(arguments[0]) // unit
        valid = valid_rows(arguments, rows)
        rendered = _at_once(arguments, numbers, moments, zone)
        if rendered is not None:
            return masked(rendered, valid)

        def one(value: int, pattern: str, name: str | None = None) -> str:
            return show(pattern_of(pattern), moment(value, zone if name is None else zone_named(name)))

        values: list[Any] = [None] * rows
        columns = [numbers.tolist(), *(column.to_pylist() for column in arguments[1:])]
        fill(values, np.flatnonzero(valid), columns, one, context)
        return pa.array(values, result)

    return compute


def _at_once(
    arguments: Sequence[pa.Array],
    numbers: Numbers,
    moments: Callable[[Numbers, Zone], Moments],
    default: Zone,
) -> pa.Array | None:
    pattern = constant(arguments[1])
    name = constant(arguments[2]) if len(arguments) > 2 else default.id
    if pattern is None or name is None:
        return None
    try:
        zone = default if len(arguments) < 3 else zone_named(name)
        settled = _settled(pattern_of(pattern), zone)
    except ValueError:
        return None
    days, nanos, offsets = moments(numbers, zone)
    return show_all(settled if offsets is not None else pattern_of(pattern), days, nanos, offsets)


def _settled(pattern: Pattern, zone: Zone) -> Pattern:
    """Replace the time zone fields of a pattern by literals if the zone has fixed texts."""
    moment = Moment(0, 0, zone, zone.seconds)

    def settle(part: Part) -> Part:
        fixed = zone.region is None and isinstance(part, Offset | GmtOffset | ZoneName)
        constant = fixed or isinstance(part, ZoneId) or (isinstance(part, ZoneName) and part.generic)
        return Literal(show(Pattern("", (part,)), moment)) if constant else part

    return replace(pattern, parts=tuple(map(settle, pattern.parts)))


def _function(name: str, summary: str, overload: Overload, example: str) -> ScalarFunction:
    return ScalarFunction(name, "date_time", summary, (overload,), example=example)


FUNCTIONS: Final = (
    _function(
        "DATETOSTRING",
        "A number of days since 1970-01-01 as text, by a pattern. FORMAT_DATE does the same for a DATE.",
        Overload(
            "DATETOSTRING(days INT, pattern VARCHAR)", takes(INT, VARCHAR, result=VARCHAR), _formats(_date, _dates)
        ),
        "DATETOSTRING(18765, 'yyyy-MM-dd') -> '2021-05-18'",
    ),
    _function(
        "FORMAT_DATE",
        "A DATE as text, by a pattern of Java's DateTimeFormatter.",
        Overload(
            "FORMAT_DATE(date DATE, pattern VARCHAR)", takes(DATE, VARCHAR, result=VARCHAR), _formats(_date, _dates)
        ),
        "FORMAT_DATE(FROM_DAYS(18765), 'dd MMM yyyy') -> '18 May 2021'",
    ),
    _function(
        "FORMAT_TIME",
        "A TIME as text, by a pattern of Java's DateTimeFormatter.",
        Overload(
            "FORMAT_TIME(time TIME, pattern VARCHAR)", takes(TIME, VARCHAR, result=VARCHAR), _formats(_time, _times)
        ),
        "FORMAT_TIME(PARSE_TIME('13:25', 'HH:mm'), 'h:mm a') -> '1:25 PM'",
    ),
    _function(
        "FORMAT_TIMESTAMP",
        "A TIMESTAMP as text, by a pattern of Java's DateTimeFormatter, in a time zone or in GMT.",
        Overload(
            "FORMAT_TIMESTAMP(timestamp TIMESTAMP, pattern VARCHAR[, zone VARCHAR])",
            takes(TIMESTAMP, VARCHAR, VARCHAR, result=VARCHAR, optional=1),
            _formats(_instant, _instants, GMT, unit=1000),
        ),
        "FORMAT_TIMESTAMP(FROM_UNIXTIME(0), 'yyyy-MM-dd HH:mm z', 'Europe/Paris') -> '1970-01-01 01:00 CET'",
    ),
    _function(
        "TIMESTAMPTOSTRING",
        "Milliseconds since 1970 as text, by a pattern, in a time zone or in UTC. FORMAT_TIMESTAMP does the same for a"
        " TIMESTAMP.",
        Overload(
            "TIMESTAMPTOSTRING(milliseconds BIGINT, pattern VARCHAR[, zone VARCHAR])",
            takes(BIGINT, VARCHAR, VARCHAR, result=VARCHAR, optional=1),
            _formats(_instant, _instants),
        ),
        "TIMESTAMPTOSTRING(0, 'yyyy-MM-dd HH:mm:ss.SSS') -> '1970-01-01 00:00:00.000'",
    ),
)
