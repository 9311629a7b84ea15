"""A join of two streams: each record matches earlier ones of the other side, in state or in the same batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.cells.sorted_runs import Runs
from potok.operators.core.chunk import Chunk, Column, concat
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Receiver, Task, all_but
from potok.operators.exchange.shards import key_column
from potok.operators.joins.join_rows import (
    Origins,
    Probe,
    Rows,
    concat_rows,
    equal_keys,
    headers_or_none,
    rows_of_chunk,
)
from potok.operators.joins.join_side import JoinSide, Port, no_values, rendered_values, stored_values
from potok.operators.joins.pairing import Joiner
from potok.state.session import StateSession
from potok.topology.nodes.joins import JoinKind, JoinWindow

SIDES = ("left", "right")


class StreamJoin(Operator):
    """Emit one pair for each two records that match; unmatched ones are emitted when they close, if the join is
    outer.

    In that case the watermark of later steps is held back, so that results have a stream time no later than their own
    time.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        how: JoinKind,
        window: JoinWindow,
        joiner: Joiner,
        key_type: pa.DataType | None,
        value_types: tuple[pa.DataType | None, pa.DataType | None],
        sides: tuple[JoinSide, JoinSide],
        session: StateSession,
        watermark_ms: int,
        input_partitions: Sequence[InputPartition],
        *,
        keeps_headers: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._joiner, self._key_type, self._types = joiner, key_type, value_types
        self._keeps_headers = keeps_headers
        self._window, self._watermark_ms, self._origins = window, watermark_ms, Origins(input_partitions)
        self._lets_wait = how is not JoinKind.INNER
        wanted = {JoinKind.INNER: (False, False), JoinKind.LEFT: (True, False), JoinKind.OUTER: (True, True)}[how]
        self._sides = [
            _Side(index, Port(self, side), Runs(f"{name}/{word}", session, window.keep_ms, marked=alone), alone)
            for index, (side, word, alone) in enumerate(zip(sides, SIDES, wanted, strict=True))
        ]

    @property
    def state_tables(self) -> list[str]:
        return [side.runs.table for side in self._sides]

    def port(self, index: int) -> Receiver:
        return self._sides[index].port

    def next_due(self) -> int | None:
        return min((due for side in self._sides if (due := side.runs.next_due()) is not None), default=None)

    def finish(self) -> None:
        for side in self._sides:
            self._take_in(side)
        pairs = self._meet()
        if pairs:
            left = concat_rows([one for one, _ in pairs])
            right = concat_rows([other for _, other in pairs])
            self._send(left, right)
        self._close()

    def _take_in(self, side: _Side) -> None:
        if not side.port.chunks:
            return
        chunk = concat(side.port.chunks)
        side.port.chunks = []
        values, errors = stored_values(chunk, self._types[side.index])
        if errors:
            chunk = self.set_aside(chunk, errors)
            values = values.filter(pa.array(all_but(errors, len(values))))
        if len(chunk):
            side.rows = rows_of_chunk(chunk, values, self._origins, headers=self._keeps_headers)
            side.marks = np.zeros(len(chunk), np.bool_)

    def _meet(self) -> list[tuple[Rows, Rows]]:
        left, right = self._sides
        pairs = []
        if left.rows is not None and right.rows is not None:
            here, there = left.probe(self._window).match(right.rows.hashes, right.rows.times)
            one, other = left.rows.take(here), right.rows.take(there)
            same = equal_keys(one, other)
            left.marks[here[same]] = right.marks[there[same]] = True
            pairs.append((one.where(same), other.where(same)))
        for near, far in ((left, right), (right, left)):
            pairs += [(mine, its) if near is left else (its, mine) for mine, its in self._look(near, far)]
        return [pair for pair in pairs if len(pair[0])]

    def _look(self, near: _Side, far: _Side) -> list[tuple[Rows, Rows]]:
        """Return what the new rows of one side find in the state of the other."""
        if near.rows is None:
            return []
        met = []
        for found in far.runs.find(near.probe(self._window)):
            mine = near.rows.take(found.seekers)
            same = equal_keys(mine, found.rows)
            near.marks[found.seekers[same]] = True
            found = found.where(same)
            if far.alone:
                far.runs.mark(found.run, found.numbers)
            met.append((mine.where(same), found.rows))
        return met

    def _close(self) -> None:
        """Remove rows that no record can match any more, including those of this batch."""
        for side in self._sides:
            out = side.runs.close(self._watermark_ms)
            if side.rows is not None:
                due = side.rows.times + self._window.keep_ms <= self._watermark_ms
                side.runs.add(side.rows.where(~due), side.marks[~due], self._watermark_ms)
                if side.alone:
                    out.append(side.rows.where(due & ~side.marks))
            side.runs.finish()
            out = [rows for rows in out if len(rows)]
            if out:
                rows = concat_rows(out)
                self._send(*((rows, None) if side.index == 0 else (None, rows)))

    def _send(self, left: Rows | None, right: Rows | None) -> None:
        """Emit pairs by their time; a pair has the position of the left record, or of the right one without it."""
        rows = left if left is not None else right
        assert rows is not None
        times = stream_times = rows.times
        order = np.lexsort((rows.offsets, rows.origins, times))
        if left is not None and right is not None:
            times = np.maximum(left.times, right.times)
            stream_times = np.maximum(left.stream_times, right.stream_times)
            if self._lets_wait:
                stream_times = np.minimum(stream_times, times)
            order = np.lexsort((right.offsets, right.origins, left.offsets, left.origins, times))
        left, right, rows = (None if part is None else part.take(order) for part in (left, right, rows))
        assert rows is not None
        keys = key_column(rows.keys, self._key_type)
        called = self._joiner(keys, self._values(0, left, len(rows)), self._values(1, right, len(rows)))
        input_partitions = self._origins.input_partitions(rows.origins)
        columns = times[order], stream_times[order], input_partitions, rows.offsets
        chunk = Chunk(keys, called.column, *columns, headers=_headers(left, right))
        self.emit(self.set_aside(chunk, called.errors, Reason.ERROR))

    def _values(self, index: int, rows: Rows | None, count: int) -> Column:
        type_ = self._types[index]
        return no_values(count, type_) if rows is None else rendered_values(rows.values, type_)


def _headers(left: Rows | None, right: Rows | None) -> pa.Array | None:
    """Return the headers of the later record of each pair by time, independent of the order of arrival."""
    if left is None or right is None:
        alone = left if left is not None else right
        return None if alone is None else alone.headers
    if left.headers is None and right.headers is None:
        return None
    both = pa.concat_arrays([headers_or_none(left), headers_or_none(right)])
    rows = np.arange(len(left))
    return both.take(pa.array(np.where(left.times > right.times, rows, rows + len(left))))


class _Side:
    """One side: the rows of this batch, those in state, and whether unmatched rows are emitted."""

    def __init__(self, index: int, port: Port, runs: Runs, alone: bool) -> None:
        self.index, self.port, self.runs, self.alone = index, port, runs, alone
        self.rows: Rows | None = None
        self.marks: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def probe(self, window: JoinWindow) -> Probe:
        assert self.rows is not None
        earlier, later = window.reach_ms(self.index)
        return Probe(self.rows.hashes, self.rows.times - earlier, self.rows.times + later)
