"""A record as plain data, ready for JSON."""

from __future__ import annotations

import base64
from typing import Any

from potok.records.log_record import LogRecord


def record_as_object(record: LogRecord) -> dict[str, Any]:
    """Return key, value and headers as text; bytes that are not text become `{"base64": "..."}`."""
    shown: dict[str, Any] = {
        "key": text_of(record.key),
        "value": text_of(record.value),
        "timestamp": record.timestamp_ms,
        "partition": record.partition,
        "offset": record.offset,
    }
    if record.headers:
        shown["headers"] = {name: text_of(value) for name, value in record.headers}
    return shown


def text_of(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
