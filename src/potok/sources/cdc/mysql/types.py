"""How types of MariaDB and MySQL are written in Debezium's envelope, as Debezium's connectors do by default."""

from __future__ import annotations

import functools
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from potok.sources.cdc.envelopes.json_columns import each, or_each, plain_quoted, quoted
from potok.sources.cdc.envelopes.shape import Kind
from potok.sources.cdc.kinds import (
    DOUBLE,
    INT16,
    INT32,
    INT64,
    TEXT,
    UNAVAILABLE_BYTES,
    UUID,
    days,
    decimal_kind,
    micros,
)
from potok.topology.capture import Decimals, Times

_MILLIS = 3
"""The greatest precision of a DATETIME whose unit is milliseconds."""

_INTEGERS = {"tinyint": (INT16, INT16), "smallint": (INT16, INT32), "mediumint": (INT32, INT32), "int": (INT32, INT64)}
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")


class MysqlType(NamedTuple):
    """A type as the catalog and the binary log describe it."""

    name: str
    """As in DDL, without anything in brackets: `int`, `varchar`."""
    unsigned: bool = False
    length: int = 0
    """Characters, bytes or bits; the precision of a decimal number."""
    scale: int = 0
    """The digits behind the point, also of seconds."""
    labels: tuple[str, ...] = ()
    nullable: bool = True


def spelled(type_: MysqlType) -> str:
    """Return a type as in DDL: `decimal(10,2) unsigned`, `varchar(20)`."""
    name = type_.name
    if name == "decimal":
        name += f"({type_.length},{type_.scale})"
    elif type_.labels:
        listed = ",".join("'" + label.replace("'", "''") + "'" for label in type_.labels)
        name += f"({listed})"
    elif name in ("char", "varchar", "binary", "varbinary", "bit"):
        name += f"({type_.length})"
    elif type_.scale and name in ("datetime", "timestamp", "time"):
        name += f"({type_.scale})"
    return f"{name} unsigned" if type_.unsigned else name


@functools.lru_cache(maxsize=4096)
def kind_of(type_: MysqlType, decimals: Decimals, times: Times = "adaptive") -> Kind:
    """Return how values of a type are written."""
    name = type_.name
    if name in _INTEGERS:
        return _INTEGERS[name][type_.unsigned]
    if name == "decimal":
        return decimal_kind(type_.length, type_.scale, decimals)
    if name == "bit":
        if type_.length == 1:
            return Kind("boolean", each(lambda text: "false" if text == "0" else "true"))
        size = (type_.length + 7) // 8
        bits = each(lambda text: f'"{b64encode(int(text).to_bytes(size, "little")).decode()}"')
        parameters = (("length", str(type_.length)),)
        return Kind("bytes", bits, "io.debezium.data.Bits", UNAVAILABLE_BYTES, parameters)
    if name in ("enum", "set"):
        semantic = "io.debezium.data.Enum" if name == "enum" else "io.debezium.data.EnumSet"
        return Kind("string", quoted, semantic, parameters=(("allowed", ",".join(type_.labels)),))
    if name in ("date", "datetime", "timestamp"):
        return _dated(type_, times)
    return _KINDS.get(name, TEXT)


def _dated(type_: MysqlType, times: Times) -> Kind:
    """Return a kind that writes dates which do not exist as null, or as the epoch in a column that is NOT NULL."""
    if type_.name == "date":
        kind = Kind("int32", days, "io.debezium.time.Date")
    elif type_.name == "timestamp":
        kind = Kind("string", _zoned, "io.debezium.time.ZonedTimestamp")
    elif type_.scale <= _MILLIS and times == "adaptive":
        kind = Kind("int64", _millis, "io.debezium.time.Timestamp")
    else:
        kind = Kind("int64", micros, "io.debezium.time.MicroTimestamp")
    render = kind.render
    epoch = '"1970-01-01T00:00:00Z"' if type_.name == "timestamp" else "0"
    fallback = "null" if type_.nullable else epoch

    def one(text: str) -> str:
        try:
            found: str = render(pa.array([text], pa.string()))[0].as_py()
        except pa.ArrowInvalid:
            return fallback
        return found

    return replace(kind, render=or_each(render, one))


def _millis(texts: pa.Array) -> pa.Array:
    return pc.cast(pc.divide(pc.cast(texts, pa.timestamp("us")).view(pa.int64()), 1000), pa.string())


def _zoned(texts: pa.Array) -> pa.Array:
    """Return times of UTC in ISO 8601, without the zeros behind the last digit of a second."""
    pc.cast(texts, pa.timestamp("us"))
    found = pc.replace_substring(texts, " ", "T", max_replacements=1)
    found = pc.replace_substring_regex(found, r"(\.\d*?)0+$", r"\1")
    return plain_quoted(pc.binary_join_element_wise(pc.utf8_rtrim(found, "."), "Z", ""))


def _time(text: str) -> str:
    """Return the microseconds of a time, which may be negative and more than a day."""
    found = _TIME.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    seconds = int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4])
    us = seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))
    return str(-us if found[1] else us)


def _float(texts: pa.Array) -> pa.Array:
    """Return numbers of 32 bits, which arrive as their 64 bits, in as few digits as they need."""
    return pc.cast(pc.cast(pc.cast(texts, pa.float64()), pa.float32()), pa.string())


def _geometry(text: str) -> str:
    """Return a geometry: the server has its reference system in front of its well-known binary form."""
    data = b64decode(text)
    srid = int.from_bytes(data[:4], "little")
    return f'{{"wkb":"{b64encode(data[4:]).decode()}","srid":{srid or "null"}}}'


_GEOMETRY = [
    {"type": "bytes", "optional": False, "field": "wkb"},
    {"type": "int32", "optional": True, "field": "srid"},
]
_BASE64 = Kind("bytes", plain_quoted, None, UNAVAILABLE_BYTES)

_KINDS = {
    **dict.fromkeys(BYTES, _BASE64),
    "bigint": INT64,
    "float": Kind("float", _float),
    "double": DOUBLE,
    "year": replace(INT32, semantic="io.debezium.time.Year"),
    "time": Kind("int64", each(_time), "io.debezium.time.MicroTime"),
    "json": Kind("string", quoted, "io.debezium.data.Json"),
    "uuid": UUID,
    "geometry": Kind("struct", each(_geometry), "io.debezium.data.geometry.Geometry", details=(("fields", _GEOMETRY),)),
}
