"""Windows of records, and windows in cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.core.chunk import Chunk, Column, Ints
from potok.operators.exchange.shards import key_column
from potok.topology.nodes import FixedWindow

_BIAS = 1 << 63
_SIGN = np.uint64(_BIAS)


@dataclass(frozen=True, slots=True)
class Spans:
    """The windows of each record by their starts: from `first` to `last`; those before `open` were closed for it."""

    first: Ints
    open: Ints
    last: Ints

    @property
    def late(self) -> npt.NDArray[np.bool_]:
        """Return the records that miss some or all of their windows."""
        return np.asarray(self.open > self.first, np.bool_)

    def where(self, mask: npt.NDArray[np.bool_]) -> Spans:
        return Spans(self.first[mask], self.open[mask], self.last[mask])


def spans_of(window: FixedWindow, chunk: Chunk) -> Spans:
    """Return the windows of records. A window is closed for a record once its partition's stream time has reached the
    window's end and the grace. No window of a record from 1970 on starts before 1970, as in Kafka Streams.
    """
    times, advance = chunk.timestamp, window.advance_ms
    last = times - np.mod(times, advance)
    first = last - (window.size_ms - 1 - (times - last)) // advance * advance
    first = np.where(times >= 0, np.maximum(first, 0), first)
    closed = chunk.stream_time - (window.size_ms + window.grace_ms)
    return Spans(first, np.maximum(first, (closed // advance + 1) * advance), last)


def spread(first: Ints, last: Ints, advance_ms: int) -> tuple[npt.NDArray[np.intp], Ints]:
    """Repeat each row for each of its windows: the numbers of the rows, and the starts."""
    counts = (last - first) // advance_ms + 1
    rows = np.repeat(np.arange(len(first)), counts)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + nth * advance_ms


def late_reason(window: FixedWindow, chunk: Chunk, spans: Spans, row: int) -> str:
    start, stream_time = int(spans.first[row]), int(chunk.stream_time[row])
    end = start + window.size_ms
    text = (
        f"window [{start}, {end}) was closed: stream time {stream_time} is "
        f"{stream_time - end - window.grace_ms} ms past its end and grace"
    )
    windows, missed = (int(to - start) // window.advance_ms for to in (spans.last[row], spans.open[row]))
    if missed > windows:
        return text
    return f"{text}; it counted in the {windows + 1 - missed} of its {windows + 1} windows that were open"


def time_bytes(times: Ints) -> list[bytes]:
    """Encode instants as eight bytes that sort like the instants."""
    data = (times.astype(np.int64).view(np.uint64) ^ _SIGN).astype(">u8").tobytes()
    return [data[i : i + 8] for i in range(0, len(data), 8)]


def times_of(parts: Sequence[bytes]) -> Ints:
    """Decode the instants of `time_bytes`."""
    return (np.frombuffer(b"".join(parts), ">u8").astype(np.uint64) ^ _SIGN).view(np.int64)


def time_of(data: bytes) -> int:
    return int.from_bytes(data, "big") - _BIAS


def time_key(time_ms: int) -> bytes:
    """Encode one instant like `time_bytes`, clamped to 64 bits."""
    return min(max(time_ms + _BIAS, 0), 2 * _BIAS - 1).to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class WindowKeys:
    """The keys of cells: the canonical key, then the start of the window and, for a session, its end; or, `by_start`,
    the start and then the key.
    """

    kind: str
    size_ms: int
    by_start: bool = False

    @property
    def width(self) -> int:
        """Return how many bytes at the end of a cell's key identify the window."""
        return 16 if self.kind == "session" else 8

    def inner(self, cell_key: bytes) -> bytes:
        return cell_key[8:] if self.by_start else cell_key[: -self.width]

    def bounds(self, cell_key: bytes) -> tuple[int, int]:
        if self.kind == "session":
            return time_of(cell_key[-16:-8]), time_of(cell_key[-8:])
        start = time_of(cell_key[:8] if self.by_start else cell_key[-8:])
        return start, start + self.size_ms

    def bounds_of(self, cell_keys: Sequence[bytes]) -> tuple[Ints, Ints]:
        """Return the bounds of many windows."""
        if self.kind == "session":
            return times_of([key[-16:-8] for key in cell_keys]), times_of([key[-8:] for key in cell_keys])
        starts = times_of([key[:8] if self.by_start else key[-8:] for key in cell_keys])
        return starts, starts + self.size_ms

    def cell_key(self, inner: bytes, start_ms: int, end_ms: int) -> bytes:
        if self.by_start:
            return time_key(start_ms) + inner
        return inner + time_key(start_ms) + (time_key(end_ms) if self.kind == "session" else b"")

    def holds(self, bounds: tuple[int, int], at_ms: int) -> bool:
        """Whether an instant is in a window; the end of a fixed window is exclusive."""
        start, end = bounds
        return start <= at_ms < end if self.kind == "fixed" else start <= at_ms <= end


def open_table(table: str) -> str:
    """Return the table of windows that may still change, all those of a key in one cell."""
    return f"{table}/open"


def timers_of(table: str) -> str:
    """Return the index that says when a window of a key closes next, or earlier."""
    return f"{table}/closing"


def spanned_keys(keys: pa.Array, starts: Ints, ends: Ints, key_type: pa.DataType | None) -> Column:
    """Return the keys of a table with windows of variable length, as its downstream sees them."""
    column = key_column(keys, key_type)
    if isinstance(column, list):
        spans = zip(column, starts.tolist(), ends.tolist(), strict=True)
        return [{"key": key, "start": start, "end": end} for key, start, end in spans]
    return pa.StructArray.from_arrays([column, pa.array(starts), pa.array(ends)], ["key", "start", "end"])
