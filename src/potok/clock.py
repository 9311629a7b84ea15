"""Wall-clock time, and instants as milliseconds since 1970."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    """Return the wall-clock time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def epoch_ms(moment: datetime) -> int:
    """Return the whole milliseconds since 1970 at or before `moment`.

    A moment without a zone is in UTC: its meaning must not depend on the machine.

    >>> epoch_ms(datetime(1970, 1, 2))
    86400000
    """
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(milliseconds=1)


def parse_epoch_ms(text: str) -> int:
    """Read milliseconds since 1970, or a date or time in ISO 8601. Raise ValueError for any other text.

    >>> parse_epoch_ms("1970-01-01T00:00:01Z"), parse_epoch_ms("-5")
    (1000, -5)
    """
    if not text.removeprefix("-").isdecimal():
        return epoch_ms(datetime.fromisoformat(text))
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("does not fit into 64 bits")
    return number
