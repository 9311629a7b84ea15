"""The names of SQL types, which are Arrow types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from potok.records.schemas.column_types import TIMESTAMP as _INSTANT
from potok.sql.syntax.lexer.words import quoted as quoted

BOOLEAN: Final = pa.bool_()
INT: Final = pa.int32()
BIGINT: Final = pa.int64()
DOUBLE: Final = pa.float64()
VARCHAR: Final = pa.string()
BYTES: Final = pa.binary()
DATE: Final = pa.date32()
TIME: Final = pa.time32("ms")
TIMESTAMP: Final = _INSTANT
NULL: Final = pa.null()
"""The type of NULL itself, until the context determines another."""

MAX_PRECISION: Final = 38
NULL_KEY: Final = "null"
"""Replaces NULL as the key of a map, which Arrow does not support; ksqlDB's JSON has the same key."""

NAMES: Final = {
    BOOLEAN: "BOOLEAN",
    INT: "INTEGER",
    BIGINT: "BIGINT",
    DOUBLE: "DOUBLE",
    VARCHAR: "VARCHAR",
    BYTES: "BYTES",
    DATE: "DATE",
    TIME: "TIME",
    TIMESTAMP: "TIMESTAMP",
    NULL: "NULL",
}

SPELLINGS: Final = {
    **{name: type_ for type_, name in NAMES.items() if type_ != NULL},
    "BOOL": BOOLEAN,
    "INT": INT,
    "STRING": VARCHAR,
}
"""Every scalar type by the names that statements may use."""


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


def array(item: pa.DataType) -> pa.DataType:
    return pa.list_(item)


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(key, value)


def struct(fields: list[tuple[str, pa.DataType]]) -> pa.DataType:
    return pa.struct(fields)


def is_number(type_: pa.DataType) -> bool:
    return type_ in (INT, BIGINT, DOUBLE) or pa.types.is_decimal(type_)


def type_name(type_: pa.DataType, own: Callable[[pa.DataType], str | None] = lambda _: None) -> str:
    """Return the SQL name of a type, or of a part of one that has a name of its `own`.

    >>> type_name(array(map_of(VARCHAR, decimal(4, 2))))
    'ARRAY<MAP<VARCHAR, DECIMAL(4, 2)>>'
    """
    if (given := own(type_)) is not None:
        return given
    if type_ in NAMES:
        return NAMES[type_]
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"ARRAY<{type_name(type_.value_type, own)}>"
    if pa.types.is_map(type_):
        return f"MAP<{type_name(type_.key_type, own)}, {type_name(type_.item_type, own)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{quoted(field.name)} {type_name(field.type, own)}' for field in type_)}>"
    return str(type_)
