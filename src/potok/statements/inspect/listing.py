"""Results that are lists of texts and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from potok.sql.types import BIGINT, VARCHAR
from potok.statements.results import ResultColumn, Row, Rows

Details = Sequence[tuple[str, Any]]


def texts(*names: str, numbers: Iterable[str] = ()) -> tuple[ResultColumn, ...]:
    """Columns of text, besides those that hold whole numbers."""
    types: dict[str, pa.DataType] = dict.fromkeys(numbers, BIGINT)
    return tuple(ResultColumn(name, types.get(name, VARCHAR)) for name in names)


def listed(kind: str, columns: tuple[ResultColumn, ...], rows: Iterable[Row], details: Details = ()) -> Rows:
    """A result of the rows that are given, without details that have nothing to say."""
    told = tuple((heading, value) for heading, value in details if value not in ("", None))
    return Rows(kind, columns, tuple(rows), told)


def show_time(timestamp_ms: int) -> str:
    """An instant as text, to the millisecond."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms since 1970"
