"""How PostgreSQL's types are written in Debezium's envelope: the same types and encodings as Debezium's connector."""

from __future__ import annotations

import functools
from base64 import b64encode
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.json_columns import each, or_each, plain_quoted, quoted
from potok.sources.cdc.envelopes.shape import UNAVAILABLE_TEXT, Kind, json_text
from potok.sources.cdc.kinds import (
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    TEXT,
    UNAVAILABLE_BYTES,
    UUID,
    days,
    decimal_kind,
    decimal_parts,
    micros,
    signed_bytes,
)
from potok.sources.cdc.postgres.texts import (
    array_items,
    bits,
    bytes_of_hex,
    date_days,
    interval_us,
    time_us,
    time_with_zone,
    timestamp_us,
    timestamp_with_zone,
)
from potok.topology.capture import Decimals, Times

_MILLIS = 3
"""The greatest precision of a time whose unit is milliseconds."""


class PostgresType(NamedTuple):
    """A type as the catalog and pgoutput name it."""

    oid: int
    modifier: int
    name: str
    """As in pg_type: `int4`, `_text` for an array of text."""


def kind_of(type_: PostgresType, decimals: Decimals, times: Times = "adaptive") -> Kind:
    """Return how values of a type are written. Types without an entry are text, as PostgreSQL prints them."""
    if type_.name.startswith("_"):
        return _array(type_, decimals, times)
    if type_.name == "numeric":
        return _numeric(type_.modifier, decimals)
    if times == "adaptive" and type_.name in ("timestamp", "time") and 0 <= type_.modifier <= _MILLIS:
        return _TIMESTAMP_MILLIS if type_.name == "timestamp" else _TIME_MILLIS
    if (type_.name == "bit" and type_.modifier > 1) or type_.name == "varbit":
        return replace(_BITS, parameters=(("length", str(max(type_.modifier, 0) or 2**31 - 1)),))
    return _KINDS.get(type_.name, TEXT)


def spelled(type_: PostgresType) -> str:
    """Return a type as in DDL: `numeric(10,2)`, `varchar(20)`."""
    name, modifier = type_.name, type_.modifier
    if name.startswith("_"):
        return spelled(type_._replace(name=name[1:])) + "[]"
    if name == "numeric" and modifier >= 0:
        precision, scale = _precision(modifier)
        return f"numeric({precision},{scale})"
    if name in ("varchar", "bpchar") and modifier >= 0:
        return f"{name}({modifier - 4})"
    if name in ("timestamp", "timestamptz", "time", "timetz", "bit", "varbit") and modifier >= 0:
        return f"{name}({modifier})"
    return name


def _clock_micros(texts: pa.Array) -> pa.Array:
    # Arrow does not read times of day, but the first day of its epoch.
    return micros(pc.binary_join_element_wise("1970-01-01 ", texts, ""))


def _boolean(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, "t"), "true", "false")


def _zoned(texts: pa.Array) -> pa.Array:
    """Return times of UTC, as the session prints them, in ISO 8601."""
    usual = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$")
    if not pc.all(usual).as_py():
        return each(lambda text: f'"{timestamp_with_zone(text)}"')(texts)
    found = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return plain_quoted(pc.replace_substring(found, "+00", "Z"))


def _millis(texts: pa.Array) -> pa.Array:
    return each(lambda text: str(timestamp_us(text) // 1000))(texts)


def _bytes(text: str) -> str:
    return f'"{b64encode(bytes_of_hex(text)).decode()}"'


def _bits(text: str) -> str:
    return f'"{b64encode(bits(text)).decode()}"'


_TIMESTAMP_MILLIS = Kind("int64", _millis, "io.debezium.time.Timestamp")
_TIME_MILLIS = Kind("int32", each(lambda text: str(time_us(text) // 1000)), "io.debezium.time.Time")
_BITS = Kind("bytes", each(_bits), "io.debezium.data.Bits", UNAVAILABLE_BYTES)
_BYTES = Kind("bytes", each(_bytes), None, UNAVAILABLE_BYTES)

_KINDS = {
    "bool": Kind("boolean", _boolean),
    "bit": Kind("boolean", each(lambda text: "true" if text == "1" else "false")),
    "int2": INT16,
    "int4": INT32,
    "int8": INT64,
    "oid": INT64,
    "float4": FLOAT,
    "float8": DOUBLE,
    "bytea": _BYTES,
    "uuid": UUID,
    "json": Kind("string", quoted, "io.debezium.data.Json"),
    "jsonb": Kind("string", quoted, "io.debezium.data.Json"),
    "xml": Kind("string", quoted, "io.debezium.data.Xml"),
    "ltree": Kind("string", quoted, "io.debezium.data.Ltree"),
    "date": Kind("int32", or_each(days, lambda text: str(date_days(text))), "io.debezium.time.Date"),
    "time": Kind("int64", or_each(_clock_micros, lambda text: str(time_us(text))), "io.debezium.time.MicroTime"),
    "timestamp": Kind(
        "int64",
        or_each(micros, lambda text: str(timestamp_us(text))),
        "io.debezium.time.MicroTimestamp",
    ),
    "timestamptz": Kind("string", _zoned, "io.debezium.time.ZonedTimestamp"),
    "timetz": Kind("string", each(lambda text: f'"{time_with_zone(text)}"'), "io.debezium.time.ZonedTime"),
    "interval": Kind("int64", each(lambda text: str(interval_us(text))), "io.debezium.time.MicroDuration"),
}


def _precision(modifier: int) -> tuple[int, int]:
    """Return the precision and the scale in a type modifier; the scale is signed since PostgreSQL 15."""
    packed = modifier - 4
    scale = packed & 0x7FF
    return (packed >> 16) & 0xFFFF, scale - 0x800 if scale & 0x400 else scale


@functools.cache
def _numeric(modifier: int, decimals: Decimals) -> Kind:
    if modifier >= 0 or decimals != "precise":
        return decimal_kind(*_precision(modifier), decimals)
    fields = [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ]
    return Kind(
        "struct",
        each(_variable_decimal),
        "io.debezium.data.VariableScaleDecimal",
        f'{{"scale":0,"value":{UNAVAILABLE_BYTES}}}',
        details=(("fields", fields),),
    )


def _variable_decimal(text: str) -> str:
    number, scale = decimal_parts(text)
    return f'{{"scale":{scale},"value":"{b64encode(signed_bytes(number)).decode()}"}}'


def _array(type_: PostgresType, decimals: Decimals, times: Times) -> Kind:
    item = kind_of(PostgresType(0, type_.modifier, type_.name[1:]), decimals, times)

    def written(items: list[object]) -> str:
        parts = []
        for each_item in items:
            if each_item is None:
                parts.append("null")
            elif isinstance(each_item, list):
                parts.append(written(each_item))
            else:
                parts.append(item.render(pa.array([each_item], pa.string()))[0].as_py())
        return f"[{','.join(parts)}]"

    unavailable = json_text([UNAVAILABLE_TEXT])
    details = (("items", item.schema(optional=True)),)
    return Kind("array", each(lambda text: written(array_items(text))), None, unavailable, details=details)
