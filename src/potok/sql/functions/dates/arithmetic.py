"""Functions that compute with dates and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.compat.java.dates.zones import zone_named
from potok.sql.functions.constants import constant
from potok.sql.functions.dates.rows import Numbers, fill, numbers_of, numbers_to, valid_rows
from potok.sql.functions.function import Compute, Context, Overload, ScalarFunction, takes
from potok.sql.types import BIGINT, DATE, INT, TIME, TIMESTAMP, VARCHAR

_DAY_MS: Final = 86_400_000
_UNITS: Final = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": _DAY_MS,
}
_MOST_MS: Final = (2**63 - 1) // 1000
"""A TIMESTAMP is stored in microseconds."""


def unit_ms(name: str) -> int:
    """The milliseconds of a unit of time: SECOND, SECONDS.

    >>> unit_ms("hours")
    3600000
    """
    found = _UNITS.get(name.upper().removesuffix("S"))
    if found is None:
        raise ValueError(f"'{name}' is not a unit of time: write {', '.join(f'{unit}S' for unit in _UNITS)}")
    return found


def _units(column: pa.Array, valid: Numbers, context: Context) -> Numbers:
    """Return the milliseconds of a column of units. A row with an invalid unit becomes invalid."""
    only = constant(column)
    if only is not None and only.upper().removesuffix("S") in _UNITS:
        return np.full(len(column), unit_ms(only), np.int64)
    found: list[Any] = [None] * len(column)
    fill(found, np.flatnonzero(valid), [column.to_pylist()], unit_ms, context)
    valid &= np.array([unit is not None for unit in found], bool)
    return np.array([unit or 0 for unit in found], np.int64)


def _moves(sign: int) -> Compute:
    """Return a computation that adds `sign` intervals. A DATE stays on a whole day, a TIME wraps at midnight."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        unit, interval, value = arguments
        valid = valid_rows(arguments, rows)
        distance = _units(unit, valid, context) * numbers_of(interval) * sign
        numbers = numbers_of(value)
        if result == DATE:
            moved = (numbers * _DAY_MS + distance) // _DAY_MS
            _check(moved, 2**31 - 1, valid, context)
        elif result == TIME:
            moved = (numbers + distance) % _DAY_MS
        else:
            milliseconds = numbers // 1000 + distance
            _check(milliseconds, _MOST_MS, valid, context)
            moved = np.where(valid, milliseconds, 0) * 1000 + numbers % 1000
        return numbers_to(np.where(valid, moved, 0), result, valid)

    return compute


def _check(numbers: Numbers, most: int, valid: Numbers, context: Context) -> None:
    far = valid & ((numbers > most) | (numbers < -most))
    for row in np.flatnonzero(far):
        context.failures[int(row)] = "the result is too far away"
    valid &= ~far


def _now(unit: int) -> Compute:
    def compute(_: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        return pa.repeat(pa.scalar(context.now_ms // unit, result), rows)

    return compute


def _unix_date(arguments: Sequence[Any], *_: Any) -> pa.Array:
    return arguments[0].cast(INT)


def _from_days(arguments: Sequence[Any], *_: Any) -> pa.Array:
    return arguments[0].cast(DATE)


def _unix_timestamp(arguments: Sequence[Any], rows: int, result: pa.DataType, _: Context) -> pa.Array:
    return numbers_to(numbers_of(arguments[0]) // 1000, result, valid_rows(arguments, rows))


def _from_unixtime(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    valid = valid_rows(arguments, rows)
    milliseconds = numbers_of(arguments[0])
    _check(milliseconds, _MOST_MS, valid, context)
    return numbers_to(np.where(valid, milliseconds, 0) * 1000, result, valid)


def _convert_tz(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
    valid = valid_rows(arguments, rows)
    numbers = numbers_of(arguments[0])
    names = [constant(column) for column in arguments[1:]]
    try:
        if None in names:
            raise ValueError("the zones differ from row to row")
        from_, to = (zone_named(name).offsets(numbers // 1_000_000, local=False) for name in names)
        return numbers_to(numbers + (to - from_) * 1_000_000, result, valid)
    except ValueError:
        moved: list[Any] = [None] * rows
        columns = [numbers.tolist(), *(column.to_pylist() for column in arguments[1:])]
        fill(moved, np.flatnonzero(valid), columns, _converted, context)
        return pa.array(moved, BIGINT).cast(result)


def _converted(value: int, from_: str, to: str) -> int:
    instant = value // 1_000_000
    return value + (zone_named(to).offset_at(instant) - zone_named(from_).offset_at(instant)) * 1_000_000


def _move(name: str, kind: pa.DataType, sign: int, example: str) -> ScalarFunction:
    what = {DATE: "DATE", TIME: "TIME", TIMESTAMP: "TIMESTAMP"}[kind]
    summary = f"A {what} {'after' if sign > 0 else 'before'} a {what}, by a number of units of time."
    signature = f"{name}(unit, interval INT, {what.lower()} {what})"
    overload = Overload(signature, takes(VARCHAR, INT, kind, result=kind), _moves(sign))
    return ScalarFunction(name, "date_time", summary, (overload,), example=example)


FUNCTIONS: Final = (
    _move("DATEADD", DATE, 1, "DATEADD(DAYS, 1, FROM_DAYS(0)) -> 1970-01-02"),
    _move("DATESUB", DATE, -1, "DATESUB(DAYS, 1, FROM_DAYS(1)) -> 1970-01-01"),
    _move("TIMEADD", TIME, 1, "TIMEADD(MINUTES, 30, PARSE_TIME('23:45', 'HH:mm')) -> 00:15"),
    _move("TIMESUB", TIME, -1, "TIMESUB(HOURS, 1, PARSE_TIME('00:15', 'HH:mm')) -> 23:15"),
    _move("TIMESTAMPADD", TIMESTAMP, 1, "TIMESTAMPADD(SECONDS, 1, FROM_UNIXTIME(0)) -> 1970-01-01T00:00:01.000"),
    _move("TIMESTAMPSUB", TIMESTAMP, -1, "TIMESTAMPSUB(HOURS, 1, FROM_UNIXTIME(0)) -> 1969-12-31T23:00:00.000"),
    ScalarFunction(
        "CONVERT_TZ",
        "date_time",
        "A TIMESTAMP moved by what two time zones are apart at that instant.",
        (
            Overload(
                "CONVERT_TZ(timestamp TIMESTAMP, from VARCHAR, to VARCHAR)",
                takes(TIMESTAMP, VARCHAR, VARCHAR, result=TIMESTAMP),
                _convert_tz,
            ),
        ),
        example="CONVERT_TZ(FROM_UNIXTIME(0), 'UTC', 'Europe/Paris') -> 1970-01-01T01:00:00.000",
    ),
    ScalarFunction(
        "UNIX_DATE",
        "date_time",
        "The number of days since 1970-01-01 of a DATE, or of today in UTC.",
        (
            Overload("UNIX_DATE()", takes(result=INT), _now(_DAY_MS)),
            Overload("UNIX_DATE(date DATE)", takes(DATE, result=INT), _unix_date),
        ),
        deterministic=False,
        example="UNIX_DATE(PARSE_DATE('2021-05-18', 'yyyy-MM-dd')) -> 18765",
    ),
    ScalarFunction(
        "UNIX_TIMESTAMP",
        "date_time",
        "The milliseconds since 1970 of a TIMESTAMP, or of the time at which the batch is computed.",
        (
            Overload("UNIX_TIMESTAMP()", takes(result=BIGINT), _now(1)),
            Overload("UNIX_TIMESTAMP(timestamp TIMESTAMP)", takes(TIMESTAMP, result=BIGINT), _unix_timestamp),
        ),
        deterministic=False,
        example="UNIX_TIMESTAMP(FROM_UNIXTIME(1000)) -> 1000",
    ),
    ScalarFunction(
        "FROM_DAYS",
        "date_time",
        "The DATE so many days after 1970-01-01.",
        (Overload("FROM_DAYS(days INT)", takes(INT, result=DATE), _from_days),),
        example="FROM_DAYS(18765) -> 2021-05-18",
    ),
    ScalarFunction(
        "FROM_UNIXTIME",
        "date_time",
        "The TIMESTAMP so many milliseconds after 1970-01-01T00:00 UTC.",
        (Overload("FROM_UNIXTIME(milliseconds BIGINT)", takes(BIGINT, result=TIMESTAMP), _from_unixtime),),
        example="FROM_UNIXTIME(1000) -> 1970-01-01T00:00:01.000",
    ),
)
