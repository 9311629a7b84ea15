"""Call a processor for the records and timers of one key, so that a call that fails has no effect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from potok.operators.core.call import Errors, describe_error, python_rows
from potok.operators.core.chunk import Chunk
from potok.operators.processors.context import NO_ROW, Context, Forwarded
from potok.operators.processors.key_timers import KeyTimers, Timer
from potok.operators.processors.stores import OpenStore, OpenWindow
from potok.state.cell import CellDoesNotFit
from potok.topology.processor import Processor

ALL = sys.maxsize


class Work(NamedTuple):
    """A key with its records by number, its cells in the order of the stores, and its timers."""

    number: int
    key: Any
    rows: Sequence[int]
    cells: list[bytes | None]
    timers: bytes | None


@dataclass(slots=True)
class Outcome:
    """The result of a key; the times are those of its last call."""

    sent: list[Forwarded]
    cells: list[bytes | None] = field(default_factory=list)
    timers: bytes | None = None
    errors: Errors = field(default_factory=dict)
    failed_timers: list[tuple[Timer, str]] = field(default_factory=list)
    timestamp: int = 0
    stream_time: int = 0


class Records:
    """The records of a batch as a processor sees them."""

    def __init__(self, chunk: Chunk | None) -> None:
        self._chunk = chunk
        self.times: list[int] = [] if chunk is None else chunk.timestamp.tolist()
        self.stream_times: list[int] = [] if chunk is None else chunk.stream_time.tolist()
        self.values: list[Any] = [] if chunk is None else python_rows(chunk.value)

    def __len__(self) -> int:
        return len(self.times)

    def copies(self, rows: Sequence[int]) -> Mapping[int, Any]:
        """Copy some values again: a call that failed may have changed its arguments."""
        if self._chunk is None or not rows:
            return {}
        part = self._chunk.take(np.array(rows, np.intp))
        return dict(zip(rows, python_rows(part.value), strict=True))


class KeyCalls:
    """Call a processor for one key after the other.

    A first attempt runs without saving state. If a call raises, the key is restarted: the calls before that one
    succeeded and are repeated, and from there on the state is saved before each call.

    If the records of a key arrive in one order, `by_stream_time`, a timer fires exactly between the records before
    its time and those after it, by their stream time, independent of batch boundaries. Otherwise timers fire after
    the records of the batch, when the watermark has passed them.
    """

    def __init__(
        self,
        processor: Processor,
        ctx: Context,
        stores: list[OpenStore],
        records: Records,
        watermark_ms: int,
        *,
        by_stream_time: bool,
        check: Callable[[Forwarded], None],
    ) -> None:
        self._processor, self._ctx, self._stores, self._records = processor, ctx, stores, records
        self._watermark_ms, self._by_stream_time, self._check = watermark_ms, by_stream_time, check
        self._windows = [store for store in stores if isinstance(store, OpenWindow)]
        self._count = self._sure = 0
        self._safe: list[bytes | None] | None = None
        self._outcome = Outcome([])
        self._key: Any = None

    def run(self, work: Work) -> Outcome:
        try:
            return self._play(work, self._records.values, ALL)
        except Exception:  # noqa: BLE001 - the user's processor may raise anything; it is called again, with care
            return self.carefully(work, self._count)

    def carefully(self, work: Work, sure: int = 0) -> Outcome:
        """Run again, checking each call after the first `sure`: its state is data, and its output fits."""
        try:
            return self._play(work, self._records.copies(work.rows), sure)
        except Exception:
            if not sure:
                raise
        # An earlier call had left a state that cannot be stored.
        return self._play(work, self._records.copies(work.rows), 0)

    def _play(self, work: Work, values: Mapping[int, Any] | list[Any], sure: int) -> Outcome:
        ctx, records, reached = self._ctx, self._records, self._watermark_ms
        self._open(work, sure)
        processing_timers = [timer for timer in ctx.timers.walls if timer.at <= ctx.processing_time]
        for row in work.rows:
            now = records.stream_times[row]
            if self._by_stream_time:
                reached = max(reached, now)
                if ctx.timers.events:
                    self._fire(now, row)
            ctx.at_record(row, records.times[row], now)
            self._call(self._processor.process, values[row])
        end = len(records)
        self._fire(reached, end)
        for timer in processing_timers:
            self._sound(timer, end + 1)
        if processing_timers:
            self._fire(reached, end + 2)
        return self._close()

    def _open(self, work: Work, sure: int) -> None:
        for store, data in zip(self._stores, work.cells, strict=True):
            store.open(data)
        self._key, self._count, self._sure = work.key, 0, sure
        self._safe = None if sure else work.cells
        self._ctx.timers, self._ctx.sent = KeyTimers(work.timers), []
        self._outcome = Outcome(self._ctx.sent)

    def _fire(self, until_ms: int, turn: int) -> None:
        ctx = self._ctx
        while ctx.timers.events and ctx.timers.events[0].at <= until_ms:
            timer = ctx.timers.events.pop(0)
            ctx.at_timer(timer, turn, timer.at, max(timer.at, timer.since), wall=False)
            self._call(self._processor.on_timer, timer.at, timer)

    def _sound(self, timer: Timer, turn: int) -> None:
        """Fire a timer; one by processing time has the current stream time as its event time."""
        ctx = self._ctx
        if timer in ctx.timers.walls:
            ctx.timers.walls.remove(timer)
            now = max(self._watermark_ms, timer.since)
            ctx.at_timer(timer, turn, now, now, wall=True)
            self._call(self._processor.on_timer, timer.at, timer)

    def _call(self, function: Callable[..., Any], subject: Any, timer: Timer | None = None) -> None:
        self._ctx.report = ""
        if self._count < self._sure:
            self._take(function(self._key, subject, self._ctx))
        else:
            self._call_carefully(function, subject, timer)
        if self._ctx.report:
            self._fail(self._ctx.report, timer)
        self._count += 1

    def _call_carefully(self, function: Callable[..., Any], subject: Any, timer: Timer | None) -> None:
        ctx = self._ctx
        if self._safe is None:
            self._safe = [store.close() for store in self._stores]
        timers, sent = ctx.timers.copy(), len(ctx.sent)
        try:
            self._take(function(self._key, subject, ctx))
            cells = [store.close() for store in self._stores]
            for item in ctx.sent[sent:]:
                self._check(item)
        except CellDoesNotFit:
            raise
        except Exception as error:  # noqa: BLE001 - the user's processor may raise anything
            ctx.timers = timers
            del ctx.sent[sent:]
            for store, data in zip(self._stores, self._safe, strict=True):
                store.open(data)
            ctx.report = ""
            self._fail(describe_error(error), timer)
        else:
            self._safe = cells

    def _fail(self, error: str, timer: Timer | None) -> None:
        if timer is None:
            assert self._ctx.row != NO_ROW
            self._outcome.errors[self._ctx.row] = error
        else:
            self._outcome.failed_timers.append((timer, error))

    def _take(self, result: Any) -> None:
        """Send what a processor returned to the main output."""
        if result is None:
            return
        if not isinstance(result, list | tuple | Iterator):
            raise TypeError(f"a processor returns a list of values, or nothing; got {result!r}"[:500])
        for value in result:
            self._ctx.forward(value)

    def _close(self) -> Outcome:
        timers = self._ctx.timers
        look = timers.look_ms is None or timers.look_ms <= self._watermark_ms
        ends = [window.prune() for window in self._windows if look or window.is_read]
        if look:
            timers.look_ms = min((end for end in ends if end is not None), default=None)
        self._outcome.timestamp, self._outcome.stream_time = self._ctx.timestamp, self._ctx.stream_time
        self._outcome.cells = [store.close() for store in self._stores]
        self._outcome.timers = timers.data()
        return self._outcome
