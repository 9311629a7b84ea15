"""The result of a join by foreign key, on the shard of each row's own key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.aggregates import change
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, concat
from potok.operators.core.operator import Operator, Task
from potok.operators.core.record_order import by_position
from potok.operators.exchange.shards import key_column
from potok.operators.tables.changes import same
from potok.records.keys import encode_keys


class SettleRows(Operator):
    """Emit one change per row and batch.

    A row refers to one key at a time, so of the changes to it in a batch at most one has a value before, and at most
    one a value after. Whatever their order, these two form the change.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        key_type: pa.DataType | None,
        value_type: pa.DataType | None,
        *,
        every_update: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._key_type, self._value_type, self._every_update = key_type, value_type, every_update
        self._chunks: list[Chunk] = []

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        if not self._chunks:
            return
        chunk = concat(self._chunks)
        self._chunks = []
        assert chunk.before is not None
        keys: list[bytes] = encode_keys(chunk.key).to_pylist()
        values, olds = ([plain(value) for value in python_rows(side)] for side in (chunk.value, chunk.before))
        tales: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            tales.setdefault(key, []).append(row)
        settled: list[tuple[bytes, int, int, int]] = []
        for key, rows in sorted(tales.items()):
            came = next((row for row in rows if values[row] is not None), rows[-1])
            left = next((row for row in rows if olds[row] is not None), rows[0])
            if self._every_update or not same(olds[left], values[came]):
                settled.append((key, came, left, int(chunk.stream_time[rows].max())))
        if settled:
            shown = key_column(pa.array([key for key, *_ in settled], pa.binary()), self._key_type)
            after, before = [values[came] for _, came, *_ in settled], [olds[left] for _, _, left, _ in settled]
            came_in = np.array([came for _, came, *_ in settled], np.intp)
            times, taken = chunk.timestamp[came_in], chunk.take(came_in)
            reached = np.array([stream_time for *_, stream_time in settled], np.int64)
            columns = self._column(after), self._column(before)
            made = change(shown, *columns, times, reached, taken.cause, taken.headers)
            made.order = by_position(taken.input_partition, taken.offset)
            self.emit(made)

    def _column(self, values: list[object]) -> Column:
        return values if self._value_type is None else pa.array(values, self._value_type)
