"""The windows of agents' tables at their end: their values are told to who asked for it, and go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import numpy as np

from potok.kernels.agents_running import NO_RECORD, Running
from potok.kernels.agents_tables import OpenTable
from potok.kernels.agents_values import ABSENT
from potok.kernels.agents_windows import Closed, OpenWindows
from potok.kernels.call import Errors, describe_error
from potok.kernels.chunk import NO_LANE, Chunk

SECOND_MS = 1000


class CloseWindows:
    """Closes what the closing clock, or the clock on the wall, has passed by the life of a window."""

    def __init__(self, clock_ms: int, processing_time_ms: int) -> None:
        self._clock_ms, self._processing_time_ms = clock_ms, processing_time_ms
        self._failed: list[tuple[Closed, str]] = []

    def is_due(self, tables: Iterable[OpenTable]) -> bool:
        windows = [table for table in tables if isinstance(table, OpenWindows)]
        return any((due := table.next_due()) is not None and due <= self._now(table) for table in windows)

    def _now(self, table: OpenWindows) -> int:
        return self._processing_time_ms if table.part.wall else self._clock_ms

    async def run(self, running: Running, tables: Iterable[OpenTable]) -> None:
        self._failed = []
        running.record, running.chunk, running.value = NO_RECORD, None, None
        for table in tables:
            if isinstance(table, OpenWindows):
                for closed in table.closing(self._now(table)):
                    await self._close(running, table, closed)

    async def _close(self, running: Running, table: OpenWindows, closed: Closed) -> None:
        sent = running.begin_turn()
        running.key, running.timestamp = closed.key, closed.end_ms - 1
        running.stream_time = max(self._now(table), running.timestamp)
        if table.part.on_close is not None:
            try:
                bounds = closed.start_ms / SECOND_MS, closed.end_ms / SECOND_MS
                told = table.part.on_close((closed.key, bounds), closed.value)
                if asyncio.iscoroutine(told):
                    await told
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                running.take_back(sent)
                self._failed.append((closed, describe_error(error)))
        table.put(closed.entry, ABSENT)

    def letters(self) -> tuple[Chunk, Errors] | None:
        """The windows of which somebody did not want to hear, as records that never were in a topic."""
        if not self._failed:
            return None
        times = np.array([closed.end_ms - 1 for closed, _ in self._failed], np.int64)
        values: list[Any] = [
            {"start": closed.start_ms, "end": closed.end_ms, "value": closed.entry.table.frozen(closed.value)}
            for closed, _ in self._failed
        ]
        lanes, offsets = np.full(len(times), NO_LANE, np.int64), np.zeros(len(times), np.int64)
        chunk = Chunk([closed.key for closed, _ in self._failed], values, times, times, lanes, offsets)
        return chunk, {row: why for row, (_, why) in enumerate(self._failed)}
