"""Parse strings to values: CAST from VARCHAR accepts what ksqlDB accepts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.expressions.conversions.numbers import by_row, note, quantized
from potok.sql.functions.function import Context
from potok.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, INT, TIME, TIMESTAMP, type_name

BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's trim() removes."""

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_PARTIAL_TIME: Final = re.compile(r"([0-9]{2})?(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?)?")
_ZONE: Final = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")


def parse_column(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    """Cast a VARCHAR column to another type. An invalid string is NULL and reported."""
    trimmed = pc.utf8_trim(column, characters=BLANKS)
    if to in (INT, BIGINT, DOUBLE):
        pattern = "^-?[0-9]{1,9}$" if to != DOUBLE else r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
        if pc.all(pc.match_substring_regex(trimmed, pattern)).as_py() is not False:
            return trimmed.cast(to)
    return _parse_distinct(trimmed, to, context)


def _parse_distinct(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    """Repeated strings, such as dates, are parsed once."""
    coded = column.dictionary_encode()
    if 2 * len(coded.dictionary) > len(column):
        return by_row(column, to, parser(to), context)
    once = Context()
    parsed = by_row(coded.dictionary, to, parser(to), once)
    for code, reason in once.failures.items():
        note(context, pc.equal(coded.indices, pa.scalar(code, coded.indices.type)), reason)
    return parsed.take(coded.indices)


def parser(to: pa.DataType) -> Callable[[str], Any]:
    """Return the function that parses a trimmed string to this type, or raises ValueError."""
    if pa.types.is_decimal(to):
        return lambda text: quantized(_decimal(text, to), to)
    return _PARSERS[to]


def parses(to: pa.DataType) -> bool:
    return to in _PARSERS or pa.types.is_decimal(to)


def _decimal(text: str, to: pa.DataType) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"'{text}' is not a valid {type_name(to)}")
    found = Decimal(text)
    if found.adjusted() > 80:
        raise ValueError(f"'{text}' does not fit into {type_name(to)}")
    return found


def _whole(bits: int, name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not -(2 ** (bits - 1)) <= (found := int(text)) < 2 ** (bits - 1):
            raise ValueError(f"'{text}' is not a valid {name}")
        return found

    return parse


def _double(text: str) -> float:
    if not _NUMBER.fullmatch(text) and text not in _NOT_FINITE:
        raise ValueError(f"'{text}' is not a valid DOUBLE")
    return float(_NOT_FINITE.get(text, text))


def boolean(text: str) -> bool:
    """Parse a boolean: prefixes of `true` and `yes` are true, everything else is false."""
    folded = text.lower()
    return bool(folded) and ("true".startswith(folded) or "yes".startswith(folded))


def is_boolean(text: str) -> bool:
    """Return whether a string is clearly a boolean."""
    folded = text.strip(BLANKS).lower()
    return bool(folded) and any(word.startswith(folded) for word in ("true", "yes", "false", "no"))


def _date(text: str) -> date:
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError(f"'{text}' is not a valid DATE: write it as 2020-05-26")
    return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def _time(text: str) -> time:
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f"'{text}' is not a valid TIME: write it as 13:34:20.123")
    return time(int(found[1]), int(found[2]), int(found[3] or 0), int((found[4] or "").ljust(3, "0")[:3]) * 1000)


def _timestamp(text: str) -> datetime:
    """Parse `2020-05-26T23:59:58.000+0200`; omitted parts at the end are the least possible, and the default zone is
    UTC. Hour 24 is the end of the day."""
    day, _, rest = text.partition("T")
    cut = next((at for at, char in enumerate(rest) if char in "+-"), len(rest))
    clock, zone = rest[:cut].removesuffix("Z"), rest[cut:].strip()
    found, offset = _PARTIAL_TIME.fullmatch(clock), _ZONE.fullmatch(zone)
    if not found or (zone and not offset) or not _DATE.fullmatch(day):
        raise ValueError(
            f"'{text}' is not a valid TIMESTAMP: write it as 2020-05-26T23:59:58.000 or with a zone, ...58.000+0200"
        )
    moved = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)) if offset else timedelta()
    hour, minute, second = (int(found[part] or 0) for part in (1, 2, 3))
    millis = int((found[4] or "").ljust(3, "0"))
    is_midnight = hour == 24 and not (minute or second or millis)
    at = time(0 if is_midnight else hour, minute, second, millis * 1000)
    where = timezone(-moved if offset and offset[1] == "-" else moved)
    return (datetime.combine(_date(day), at, where) + timedelta(days=is_midnight)).astimezone(UTC)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"'{text}' is not BASE64 text") from None


_PARSERS: Final[dict[pa.DataType, Callable[[str], Any]]] = {
    BOOLEAN: boolean,
    INT: _whole(32, "INTEGER"),
    BIGINT: _whole(64, "BIGINT"),
    DOUBLE: _double,
    DATE: _date,
    TIME: _time,
    TIMESTAMP: _timestamp,
    BYTES: _bytes,
}
