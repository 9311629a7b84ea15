"""Constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.sql.expressions.typed import Typed
from potok.sql.types import BOOLEAN, VARCHAR, type_name


@dataclass(frozen=True, slots=True)
class Constant(Typed):
    """A constant; None is NULL."""

    value: Any

    def __str__(self) -> str:
        if self.value == ():
            return f"CAST({'MAP()' if pa.types.is_map(self.type) else 'ARRAY[]'} AS {type_name(self.type)})"
        return shown(self.value)


TRUE = Constant(BOOLEAN, True)


def text(value: str) -> Constant:
    return Constant(VARCHAR, value)


def null(type_: pa.DataType) -> Constant:
    return Constant(type_, None)


def shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return _double_shown(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"TO_BYTES('{value.hex()}', 'hex')"
        case datetime():
            return f"'{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}'"
        case date() | time():
            return f"'{value.isoformat()}'"
        case _:
            return str(value)


def _double_shown(value: float) -> str:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity"
        return f"CAST('{'-' * (value < 0)}{name}' AS DOUBLE)"
    return repr(value) if "e" in repr(value) else f"{value!r}E0"
