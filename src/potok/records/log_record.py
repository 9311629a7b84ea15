"""One record of a topic, as plain Python."""

from __future__ import annotations

from dataclasses import dataclass

NO_TIMESTAMP = -1


Headers = tuple[tuple[str, bytes | None], ...]
"""Names may repeat; a header may have no value."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record as the log stores it: bytes, a timestamp, and a position once it has one.

    A `timestamp_ms` of `NO_TIMESTAMP` means "the time of the append". `offset` and `partition` are -1 and
    `ingested_ms` is 0 until the log has accepted the record.
    """

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = NO_TIMESTAMP
    headers: Headers = ()
    topic: str = ""
    partition: int = -1
    offset: int = -1
    ingested_ms: int = 0
