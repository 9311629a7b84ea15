"""When a record happened, by its own timestamp or by what the source says."""

from __future__ import annotations

import datetime as dt
from typing import Any

from potok.topology.nodes import Timestamps
from potok.topology.nodes.sources import TimeNotion
from tests.oracle.call import call
from tests.oracle.records import Input


class Unreadable(Exception):
    """The source's function gave no time."""


def event_time(timestamps: Timestamps, key: Any, value: Any, read: Input) -> int:
    if timestamps.notion is not TimeNotion.EVENT:
        raise NotImplementedError("the oracle knows event time only")
    if timestamps.function is None:
        return read.timestamp_ms
    try:
        return _to_ms(call(timestamps.function, key, value), timestamps.format)
    except Exception as error:
        if read.value is None:
            return read.timestamp_ms
        raise Unreadable(str(error)) from error


def _to_ms(reported: Any, form: str) -> int:
    if isinstance(reported, str):
        reported = dt.datetime.strptime(reported, form) if form else dt.datetime.fromisoformat(reported)
    if isinstance(reported, dt.datetime):
        aware = reported if reported.tzinfo else reported.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    if isinstance(reported, bool) or not isinstance(reported, int | float):
        raise Unreadable(f"{reported!r} is not a time")
    return int(reported * {"seconds": 1000, "microseconds": 0.001}.get(form, 1))


def next_stream_time(timestamps: Timestamps, stream_time_ms: int | None, at_ms: int) -> int:
    """The stream time of a partition after a record; one record moves it no further than it may."""
    if stream_time_ms is None:
        return at_ms
    furthest = at_ms if timestamps.max_jump_ms is None else min(at_ms, stream_time_ms + timestamps.max_jump_ms)
    return max(stream_time_ms, furthest)
