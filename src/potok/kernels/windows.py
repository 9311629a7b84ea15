"""Windows of records, and windows in cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from potok.kernels.chunk import Chunk, Ints
from potok.topology.nodes import Tumbling

_SIGN = np.uint64(1 << 63)


def window_starts(window: Tumbling, timestamps: Ints) -> Ints:
    return np.asarray(timestamps - np.mod(timestamps, window.size_ms), np.int64)


def late_rows(window: Tumbling, chunk: Chunk, starts: Ints) -> npt.NDArray[np.bool_]:
    """A record is late for its window once its partition's stream time has reached the window's end and the grace."""
    return np.asarray(starts + (window.size_ms + window.grace_ms) <= chunk.stream_time, np.bool_)


def late_reason(window: Tumbling, chunk: Chunk, starts: Ints, row: int) -> str:
    start, stream_time = int(starts[row]), int(chunk.stream_time[row])
    end = start + window.size_ms
    return (
        f"window [{start}, {end}) was closed: stream time {stream_time} is "
        f"{stream_time - end - window.grace_ms} ms past its end and grace"
    )


def time_bytes(times: Ints) -> list[bytes]:
    """Instants as eight bytes that sort like the instants."""
    data = (times.astype(np.int64).view(np.uint64) ^ _SIGN).astype(">u8").tobytes()
    return [data[i : i + 8] for i in range(0, len(data), 8)]


def time_of(data: bytes) -> int:
    return int.from_bytes(data, "big") - (1 << 63)
