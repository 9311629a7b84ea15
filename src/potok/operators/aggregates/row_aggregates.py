"""Aggregates that process records one by one, on the shard of their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.errors import StateError
from potok.operators.aggregates.accumulate import UNTOUCHED, Folding, stored_accumulator
from potok.operators.aggregates.accumulators import Accumulator, Rank
from potok.operators.aggregates.aggregates import change, table_keys
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.core.call import Errors, describe_error, must_fit, plain, python_rows
from potok.operators.core.chunk import Chunk, Column, Ints, from_wire, gathered, positions_of
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.processing_order import ranks_of
from potok.operators.exchange.shards import key_column
from potok.operators.windows.expiry import NEVER, Expiry
from potok.operators.windows.windows import spans_of, spread, time_bytes, times_of
from potok.state.session import StateSession
from potok.topology.nodes import FixedWindow, Hopping

_NOTHING = (NEVER, UNTOUCHED)

UNFIT = (StateError, pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError)
"""The errors of an aggregate that is not data, or not of the declared type."""


class AccumulateRecords(Operator):
    """One state per key, or per key and window; a state is (time, stored accumulator)."""

    def __init__(
        self,
        name: str,
        task: Task,
        accumulator: Accumulator,
        window: FixedWindow | None,
        key_type: pa.DataType | None,
        result_type: pa.DataType | None,
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        *,
        declared: bool = False,
        each_record: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._accumulator, self._window, self._session = accumulator, window, session
        self._key_type, self._result_type, self._input_partitions = key_type, result_type, input_partitions
        self._declared, self._each_record = declared, each_record
        self._chunks: list[Chunk] = []
        self._expiry = Expiry(name, window, session, watermark_ms) if window else None
        self._table = self._expiry.cells if self._expiry else name
        self._written: dict[bytes, bytes] = {}

    def receive(self, payload: bytes) -> None:
        self._chunks.append(from_wire(payload))

    @property
    def state_tables(self) -> list[str]:
        return [] if self._expiry is not None else [self.name]

    def next_due(self) -> int | None:
        return self._expiry.next_due() if self._expiry is not None else None

    def finish(self) -> None:
        if self._chunks:
            self._fold(gathered(self._chunks))
            self._chunks = []
        if self._expiry is not None:
            if self.downstream and self._expiry.moves:
                self._emit_closed(self._expiry)
            self._expiry.settle()

    def _fold(self, chunk: Chunk) -> None:
        chunk, starts, origins = self._spread(chunk)
        ids, cell_keys = self._groups(chunk, starts)
        before = self._session.read(self._table, cell_keys)
        found = [_NOTHING if data is None else decode_row(data) for data in before]
        old_times = np.array([time for time, _ in found], np.int64)
        states = [state for _, state in found]
        records = self._records(chunk, cell_keys)
        folding = Folding(
            self._accumulator, ids.tolist(), *records, before, each_record=self._each_record, check=self._check
        )
        errors = folding.run(states)
        good = all_but(errors, len(ids))
        times = np.maximum(old_times, greatest_of(ids[good], chunk.timestamp[good], len(cell_keys)))
        rows = self._settle(chunk, ids, cell_keys, before, states, times, errors)
        if errors:
            decoded = chunk.with_key(key_column(chunk.key, self._key_type))
            if origins is not None:
                errors = {row: errors[row] for row in {int(origins[row]): row for row in sorted(errors)}.values()}
            self.task.dead_letters.add(decoded, errors, self.name, Reason.ERROR)
        self._session.write(self._table, [(cell_keys[i], data, before[i]) for i, data in rows])
        self._written = {} if self._expiry is None else {cell_keys[i]: data for i, data in rows}
        touched = [i for i, _ in rows]
        self.task.records_out[self.name] += 0 if self.downstream else len(touched)
        if not touched:
            return
        keys = [cell_keys[i] for i in touched]
        if self.downstream and self._each_record:
            steps = [(row, data) for row, data in folding.steps if row not in errors]
            self._emit_each(chunk, ids, cell_keys, before, old_times, steps)
        elif self.downstream:
            after = self._results([states[i] for i in touched])
            previous = self._results([stored_accumulator(before[i]) for i in touched])
            reached = greatest_of(ids, chunk.stream_time, len(cell_keys))[touched]
            self.emit(change(self._keys(keys), after, previous, times[touched], reached))

    def _emit_each(
        self,
        chunk: Chunk,
        ids: npt.NDArray[np.int64],
        cell_keys: list[bytes],
        before: list[bytes | None],
        old_times: Ints,
        steps: list[tuple[int, bytes]],
    ) -> None:
        """Emit one change for each record that succeeded, in their order."""
        last = [stored_accumulator(data) for data in before]
        times = old_times.copy()
        after: list[Any] = []
        previous: list[Any] = []
        stamps: list[int] = []
        for row, data in steps:
            i = int(ids[row])
            previous.append(last[i])
            last[i] = decode_row(data)
            after.append(last[i])
            times[i] = max(times[i], chunk.timestamp[row])
            stamps.append(int(times[i]))
        rows = np.array([row for row, _ in steps], np.intp)
        keys = self._keys([cell_keys[i] for i in ids[rows].tolist()])
        causes = chunk.take(rows)
        stream_times, positions = causes.stream_time, positions_of(causes)
        made = change(keys, self._results(after), self._results(previous), np.array(stamps), stream_times, positions)
        made.alignment_time = causes.alignment_time
        self.emit(made)

    def _spread(self, chunk: Chunk) -> tuple[Chunk, Ints | None, npt.NDArray[np.intp] | None]:
        """Repeat each record for each of its windows, with their starts and the numbers of the records."""
        if self._window is None:
            return chunk, None, None
        spans = spans_of(self._window, chunk)
        if not isinstance(self._window, Hopping):
            return chunk, spans.open, None
        rows, starts = spread(spans.open, spans.last, self._window.advance_ms)
        return chunk.take(rows), starts, rows

    def _groups(self, chunk: Chunk, times: Ints | None) -> tuple[npt.NDArray[np.int64], list[bytes]]:
        """Return the number of each record's cell, and the keys of the cells."""
        assert isinstance(chunk.key, pa.Array)
        encoded = chunk.key.dictionary_encode()
        ids, keys = encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
        if times is None:
            return ids, keys
        starts, which = np.unique(times, return_inverse=True)
        cells, numbers = np.unique(ids * len(starts) + which, return_inverse=True)
        ends = time_bytes(starts)
        return numbers, [ends[cell % len(ends)] + keys[cell // len(ends)] for cell in cells.tolist()]

    def _settle(
        self,
        chunk: Chunk,
        ids: npt.NDArray[np.int64],
        cell_keys: list[bytes],
        before: list[bytes | None],
        states: list[Any],
        times: Ints,
        errors: Errors,
    ) -> list[tuple[int, bytes]]:
        """Serialize the states. If one cannot be stored, the records that led to it are found and set aside."""
        rows: list[tuple[int, bytes]] = []
        by_cell: list[npt.NDArray[np.intp]] = []
        for i, (state, time) in enumerate(zip(states, times.tolist(), strict=True)):
            if state is UNTOUCHED:
                continue
            try:
                rows.append((i, self._data((time, state))))
            except UNFIT:
                by_cell = by_cell or rows_by_cell(ids, len(states))
                fed = [row for row in by_cell[i].tolist() if row not in errors]
                data = self._carefully(chunk.take(np.array(fed)), fed, cell_keys[i], before[i], errors)
                if data is not None:
                    times[i], states[i] = decode_row(data)
                    rows.append((i, data))
        return rows

    def _data(self, state: tuple[int, Any]) -> bytes:
        """Serialize a state, if it is data and has the declared type."""
        self._check(state[1])
        return encode_row(state[0], self._accumulator.stored(state[1]))

    def _check(self, state: Any) -> None:
        """Raise if a state does not have the declared type."""
        if self._declared and self._result_type is not None:
            must_fit(self._accumulator.result(state), self._result_type)

    def _carefully(
        self, chunk: Chunk, rows: list[int], cell_key: bytes, before: bytes | None, errors: Errors
    ) -> bytes | None:
        """Process the records of one cell again, each on the state after the last one that succeeded."""
        keys, values, ranks = self._records(chunk, [cell_key])
        data = before
        for row, value, rank, time in zip(rows, values, ranks, chunk.timestamp.tolist(), strict=True):
            last = time if data is None else decode_row(data)[0]
            try:
                data = self._data((max(last, time), self._accumulator.add(self._initial(data), keys[0], value, rank)))
            except Exception as error:  # noqa: BLE001 - the user's aggregator may raise anything
                errors[row] = describe_error(error)
        return data if data != before else None

    def _initial(self, data: bytes | None) -> Any:
        return self._accumulator.start() if data is None else stored_accumulator(data)

    def _records(self, chunk: Chunk, cell_keys: list[bytes]) -> tuple[list[Any], list[Any], Sequence[Rank | None]]:
        """Return the keys of the cells, and the values and ranks of the records."""
        inner = cell_keys if self._window is None else [key[8:] for key in cell_keys]
        keys = python_rows(key_column(pa.array(inner, pa.binary()), self._key_type))
        values = chunk.value
        if self._accumulator.wrapped or not isinstance(values, list):
            values = python_rows(values)
        ranks: Sequence[Rank | None] = [None] * len(chunk)
        if self._accumulator.ranked:
            ranks = ranks_of(chunk, self._input_partitions)
        return keys, values, ranks

    def _results(self, states: list[Any]) -> Column:
        decoded = self._accumulator.result
        values = [None if state is UNTOUCHED else plain(decoded(state)) for state in states]
        return values if self._result_type is None else pa.array(values, self._result_type)

    def _keys(self, cell_keys: list[bytes]) -> Column:
        if self._window is None:
            return table_keys(pa.array(cell_keys, pa.binary()), None, None, self._key_type)
        keys = pa.array([key[8:] for key in cell_keys], pa.binary())
        return table_keys(keys, _starts(cell_keys), self._window, self._key_type)

    def _emit_closed(self, expiry: Expiry) -> None:
        assert self._window is not None
        rows = expiry.closed(self._written)
        if not rows:
            return
        gone, states = [key for key, _ in rows], [decode_row(data) for _, data in rows]
        starts = _starts(gone)
        ends = self._window.closes_ms(starts, starts + self._window.size_ms)
        nothing = self._results([UNTOUCHED] * len(gone))
        times = np.array([time for time, _ in states], np.int64)
        chunk = change(
            self._keys(gone),
            nothing,
            self._results([stored_accumulator for _, stored_accumulator in states]),
            times,
            ends,
        )
        chunk.expired = True
        self.emit(chunk)


def greatest_of(ids: npt.NDArray[np.int64], times: Ints, count: int) -> Ints:
    """Return the greatest time of each of `count` groups."""
    found = np.full(count, np.iinfo(np.int64).min, np.int64)
    np.maximum.at(found, ids, times)
    return found


def rows_by_cell(ids: npt.NDArray[np.int64], count: int) -> list[npt.NDArray[np.intp]]:
    """Return the rows of each of `count` groups, in their order."""
    order = np.argsort(ids, kind="stable")
    return np.split(order, np.searchsorted(ids[order], np.arange(1, count)))


def _starts(cell_keys: list[bytes]) -> Any:
    return times_of([key[:8] for key in cell_keys])
