"""Classify Arrow types by their Python types: the families decide which operations agree on both sides."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, Literal

import pyarrow as pa

Family = Literal[
    "null", "bool", "int", "float", "string", "binary", "date", "time", "timestamp", "duration", "decimal",
    "list", "map", "struct", "other",
]  # fmt: skip

NUMBERS: Final[frozenset[Family]] = frozenset({"bool", "int", "float"})
"""Python's bool is an int, so it counts as a number."""

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
EXACT_FLOAT: Final = 2**53
"""Up to here every int has an exact float."""

INSTANT: Final = pa.timestamp("us", "UTC")
LOCAL: Final = pa.timestamp("us")
DURATION: Final = pa.duration("us")
TIME: Final = pa.time32("ms")

UNTYPED: Final = pa.opaque(pa.null(), "untyped", "potok")
"""The type of an argument without a declared type."""

_SIMPLE: Final[dict[pa.DataType, Family]] = {
    pa.null(): "null",
    pa.bool_(): "bool",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "int",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.uint32(): "int",
    pa.float32(): "float",
    pa.float64(): "float",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIME: "time",
    # Only microseconds in UTC or without a zone: there Arrow's instants and Python's datetimes are equivalent.
    INSTANT: "timestamp",
    LOCAL: "timestamp",
    DURATION: "duration",
}

_PYTHON: Final[dict[Family, type]] = {
    "null": type(None), "bool": bool, "int": int, "float": float, "string": str, "binary": bytes, "date": date,
    "time": time, "timestamp": datetime, "duration": timedelta, "decimal": Decimal, "list": list, "map": dict,
    "struct": dict,
}  # fmt: skip


def family(type_: pa.DataType) -> Family:
    """Return the family of a type. Types in "other" can be passed on, but not computed with."""
    simple = _SIMPLE.get(type_)
    if simple is not None:
        return simple
    if pa.types.is_struct(type_):
        return "struct"
    if pa.types.is_list(type_):
        return "list"
    if pa.types.is_map(type_):
        return "map"
    return "decimal" if pa.types.is_decimal128(type_) else "other"


def python_name(type_: pa.DataType) -> str:
    """Return the name of a type in Python's terms."""
    if type_ == UNTYPED:
        return "a value of no declared type"
    kind = python_type(type_)
    return str(type_) if kind is None else kind.__name__.replace("NoneType", "None")


def python_type(type_: pa.DataType) -> type | None:
    """Return the class of the values that a lambda sees, if there is one."""
    return _PYTHON.get(family(type_))


def widest(type_: pa.DataType) -> pa.DataType:
    """Return the type of computed results: Python has one int and one float."""
    kind = family(type_)
    if kind == "int":
        return pa.int64()
    return pa.float64() if kind == "float" else type_
