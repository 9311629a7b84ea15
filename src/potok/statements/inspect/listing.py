"""Results with text and integer columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from potok.sql.types import BIGINT, VARCHAR
from potok.statements.results import ResultColumn, Row, Rows

Details = Sequence[tuple[str, Any]]


def texts(*names: str, numbers: Iterable[str] = ()) -> tuple[ResultColumn, ...]:
    """Return columns of text, except those listed as integers."""
    types: dict[str, pa.DataType] = dict.fromkeys(numbers, BIGINT)
    return tuple(ResultColumn(name, types.get(name, VARCHAR)) for name in names)


def listed(kind: str, columns: tuple[ResultColumn, ...], rows: Iterable[Row], details: Details = ()) -> Rows:
    """Return a result with these rows, without empty details."""
    given_details = tuple((heading, value) for heading, value in details if value not in ("", None))
    return Rows(kind, columns, tuple(rows), given_details)


def show_time(timestamp_ms: int) -> str:
    """Format a timestamp with milliseconds."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms since 1970"
