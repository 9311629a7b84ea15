"""The end of windows of agents' tables: their values are passed to callbacks, and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any

import numpy as np

from potok.operators.agents.context import NO_RECORD, Running
from potok.operators.agents.tables import OpenTable
from potok.operators.agents.values import ABSENT, check_watched
from potok.operators.agents.windows import Closed, OpenWindows
from potok.operators.core.call import Errors, describe_error
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk

SECOND_MS = 1000

Deliver = Callable[[int], Awaitable[None]]


class CloseWindows:
    """Close windows whose retention the watermark, or processing time, has passed."""

    def __init__(self, watermark_ms: int, processing_time_ms: int) -> None:
        self._watermark_ms, self._processing_time_ms = watermark_ms, processing_time_ms
        self._closed: list[tuple[OpenWindows, Closed]] = []
        self._failed: list[tuple[Closed, str]] = []

    def is_due(self, tables: Iterable[OpenTable]) -> bool:
        windows = [table for table in tables if isinstance(table, OpenWindows)]
        return any((due := table.next_due()) is not None and due <= self._now(table) for table in windows)

    def _now(self, table: OpenWindows) -> int:
        return self._processing_time_ms if table.part.wall else self._watermark_ms

    async def run(
        self, running: Running, tables: Iterable[OpenTable], deliver: Deliver, timeout_s: float | None
    ) -> None:
        """Close windows. `deliver` passes values put into channels meanwhile to their consumers; each window has a
        number for that, like records.
        """
        self._closed, self._failed = [], []
        for table in tables:
            if isinstance(table, OpenWindows):
                for closed in table.closing(self._now(table)):
                    self._closed.append((table, closed))
                    number = -len(self._closed)
                    self.look_at(running, number)
                    await self._close(running, table, number, timeout_s)
                    await deliver(number)

    def look_at(self, running: Running, number: int) -> None:
        """Set the current window."""
        table, closed = self._closed[-number - 1]
        running.record, running.chunk, running.value = NO_RECORD, None, None
        running.key, running.timestamp = closed.key, closed.end_ms - 1
        running.stream_time = max(self._now(table), running.timestamp)

    async def _close(self, running: Running, table: OpenWindows, number: int, timeout_s: float | None) -> None:
        sent, (_, closed) = running.begin_turn(), self._closed[-number - 1]
        if table.part.on_close is not None:
            try:
                async with asyncio.timeout(timeout_s):
                    bounds = closed.start_ms / SECOND_MS, closed.end_ms / SECOND_MS
                    result = table.part.on_close((closed.key, bounds), closed.value)
                    if isawaitable(result):
                        await result
                check_watched(running.watched)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                running.take_back(sent)
                self._failed.append((closed, describe_error(error)))
        table.put(closed.entry, ABSENT)

    def take_over(self, errors: Errors) -> None:
        """Adopt the failures of agents that consumed values put into a channel at the end of a window."""
        for number in sorted((number for number in errors if number < 0), reverse=True):
            self._failed.append((self._closed[-number - 1][1], errors.pop(number)))

    def dead_letters(self) -> tuple[Chunk, Errors] | None:
        """Return the windows whose callback failed, as records without a position in a topic."""
        if not self._failed:
            return None
        times = np.array([closed.end_ms - 1 for closed, _ in self._failed], np.int64)
        values: list[Any] = [
            {"start": closed.start_ms, "end": closed.end_ms, "value": closed.entry.table.frozen(closed.value)}
            for closed, _ in self._failed
        ]
        input_partitions, offsets = np.full(len(times), NO_INPUT_PARTITION, np.int64), np.zeros(len(times), np.int64)
        chunk = Chunk([closed.key for closed, _ in self._failed], values, times, times, input_partitions, offsets)
        return chunk, {row: why for row, (_, why) in enumerate(self._failed)}
