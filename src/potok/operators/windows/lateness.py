"""Records that are late for windows that follow the records of a key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from potok.operators.aggregates.pre_aggregate import GroupRecords
from potok.operators.core.chunk import Chunk
from potok.operators.core.dead_letters import Reason
from potok.topology.nodes import Session, Sliding

EventWindow = Session | Sliding
"""Windows whose bounds depend on the records of their key."""


def length_of(window: EventWindow) -> int:
    """Return how far from its own time a record can affect others."""
    return window.gap_ms if isinstance(window, Session) else window.difference_ms


def on_time(step: GroupRecords, window: EventWindow, chunk: Chunk) -> Chunk:
    """Return the records that some window still accepts. All that miss one are set aside, including those that count
    in others.
    """
    late, partly = lateness(window, chunk)
    rows = np.flatnonzero(late | partly)
    if len(rows):
        errors = {int(row): late_reason(window, chunk, int(row)) for row in rows}
        step.task.dead_letters.add(chunk, errors, step.name, Reason.LATE)
    return chunk.where(~late)


def lateness(window: EventWindow, chunk: Chunk) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which records are late for all windows, and which for their own window while others that hold them are
    open.

    The last window that can hold a record with time t ends at t + gap, or at t + difference, inclusive.
    """
    own = chunk.timestamp + window.grace_ms
    if isinstance(window, Session):
        return own + window.gap_ms < chunk.stream_time, np.zeros(len(chunk), np.bool_)
    late = own + window.difference_ms + 1 <= chunk.stream_time
    return late, (own + 1 <= chunk.stream_time) & ~late


def late_reason(window: EventWindow, chunk: Chunk, row: int) -> str:
    time, stream_time = int(chunk.timestamp[row]), int(chunk.stream_time[row])
    past = stream_time - time - window.grace_ms
    if isinstance(window, Session):
        return (
            f"a session with this record could have lasted until {time + window.gap_ms}: stream time {stream_time} is "
            f"{past - window.gap_ms} ms past that and grace"
        )
    text = (
        f"window [{time - window.difference_ms}, {time}] was closed: stream time {stream_time} is "
        f"{past - 1} ms past its end and grace"
    )
    if past - 1 >= window.difference_ms:
        return text
    return f"{text}; it counts in the windows that hold it and end at {stream_time - window.grace_ms} or later"
