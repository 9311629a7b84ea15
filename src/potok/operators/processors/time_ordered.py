"""Sort records by event time: they wait until no accepted record can precede them."""

from __future__ import annotations

import numpy as np

from potok.operators.cells.waiting_records import Waiting, pack, unpack
from potok.operators.core.call import describe_error
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, concat, in_order
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Task
from potok.operators.core.record_order import by_time
from potok.operators.core.unserializable import NOT_DATA
from potok.operators.windows.expiry import NEVER
from potok.operators.windows.windows import time_bytes, time_of
from potok.state.session import StateSession

RUNS = 16
SHORTEST_RUN = 256
"""A batch is stored in up to this many cells by time, each with at least this many records: those before the
watermark are read whole, and only a part of the one that contains it is written again.
"""


class OrderRecords(Operator):
    """Hold records back and emit them by event time, then by position.

    A record with time t is late once the stream time of its partition is past t + grace. It is emitted when the
    watermark is past t + grace: a later record has a stream time that is not before the watermark, so if it is
    accepted its time is later than t. Emitted records have their own time as stream time, and the watermark of later
    steps is held back by the grace, so that nothing is late there that was not late here.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        grace_ms: int,
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        batch: int,
    ) -> None:
        super().__init__(name, task)
        self._grace_ms, self._session, self._input_partitions, self._batch = grace_ms, session, input_partitions, batch
        self._free_ms = watermark_ms - grace_ms if watermark_ms > NEVER else NEVER
        self._table = f"{name}/waiting"
        self._chunks: list[Chunk] = []

    @property
    def state_tables(self) -> list[str]:
        return [self._table]

    def next_due(self) -> int | None:
        first = self._session.first_key(self._table)
        return None if first is None else time_of(first[:8]) + self._grace_ms + 1

    def process(self, chunk: Chunk) -> None:
        behind = chunk.stream_time - chunk.timestamp - self._grace_ms
        late = {
            int(
                row
            ): f"stream time {chunk.stream_time[row]} is {behind[row]} ms past the time of the record and the grace"
            for row in np.flatnonzero(behind > 0)
        }
        self._chunks.append(self.set_aside(chunk, late, Reason.LATE))

    def finish(self) -> None:
        chunks, self._chunks = [chunk for chunk in self._chunks if len(chunk)], []
        free = self._released()
        if chunks:
            come = in_order(concat(chunks))
            going = come.timestamp < self._free_ms
            free.append(come.where(going))
            self._keep(come.where(~going))
        free = [chunk for chunk in free if len(chunk)]
        if free:
            self.emit(self._ordered(concat([bare(chunk) for chunk in free])))

    def _released(self) -> list[Chunk]:
        """Return records that wait no longer, in their order of arrival; the rest of a cell is stored under its next
        time."""
        if self._free_ms <= NEVER:
            return []
        keys = self._session.keys(self._table, _stop(self._free_ms))
        keys.sort(key=lambda key: key[8:])
        free: list[Chunk] = []
        cells: list[tuple[bytes, bytes | None, bytes | None]] = []
        for key, data in zip(keys, self._session.read(self._table, keys), strict=True):
            assert data is not None
            chunk = unpack(data, self._input_partitions)
            going = chunk.timestamp < self._free_ms
            free.append(chunk.where(going))
            cells.append((key, None, data))
            if not going.all():
                rest = chunk.where(~going)
                cells.append((_stop(int(rest.timestamp.min())) + key[8:], pack(rest, self._input_partitions), None))
        self._session.write(self._table, cells)
        return free

    def _keep(self, chunk: Chunk) -> None:
        chunk = chunk.take(np.argsort(chunk.timestamp, kind="stable"))
        cells: list[tuple[bytes, bytes | None, bytes | None]] = []
        length = max(SHORTEST_RUN, -(-len(chunk) // RUNS))
        for number, start in enumerate(range(0, len(chunk), length)):
            run = chunk.take(np.arange(start, min(start + length, len(chunk))))
            kept = self._packed(run)
            if kept is not None:
                stamp = self._batch.to_bytes(8, "big") + number.to_bytes(4, "big")
                cells.append((_stop(int(kept.first_ms)) + stamp, kept.data, None))
        if cells:
            self._session.write(self._table, cells)

    def _packed(self, run: Chunk) -> Waiting | None:
        """Return the records as a cell; those whose values are not data are set aside."""
        try:
            return Waiting(int(run.timestamp[0]), pack(run, self._input_partitions))
        except NOT_DATA:
            errors: dict[int, str] = {}
            for row in range(len(run)):
                try:
                    pack(run.take(np.array([row])), self._input_partitions)
                except NOT_DATA as error:
                    errors[row] = describe_error(error)
            rest = self.set_aside(run, errors)
            return Waiting(int(rest.timestamp[0]), pack(rest, self._input_partitions)) if len(rest) else None

    def _ordered(self, chunk: Chunk) -> Chunk:
        """Sort by time, then by position; records without one keep their order of arrival."""
        offsets = np.where(chunk.input_partition == NO_INPUT_PARTITION, 0, chunk.offset)
        result = chunk.take(np.lexsort((offsets, chunk.input_partition, chunk.timestamp)))
        result.stream_time = result.timestamp
        numbers = np.where(result.input_partition == NO_INPUT_PARTITION, np.arange(len(result)), result.offset)
        result.order = by_time(result.timestamp, result.input_partition, numbers)
        return result


def bare(chunk: Chunk) -> Chunk:
    """Return a chunk without the columns that waiting records do not have."""
    return Chunk(
        chunk.key,
        chunk.value,
        chunk.timestamp,
        chunk.stream_time,
        chunk.input_partition,
        chunk.offset,
        headers=chunk.headers,
    )


def _stop(time_ms: int) -> bytes:
    return time_bytes(np.array([time_ms], np.int64))[0]
