"""Joins of tables by a foreign key: the rows that refer to a row, on the shard of that row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.aggregates.aggregates import change
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, cause_of, concat, headers_of
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Receiver, Task
from potok.operators.core.record_order import by_position
from potok.operators.core.unserializable import data_changes, only_data
from potok.operators.exchange.shards import key_column
from potok.operators.joins.table_join import SideInput
from potok.operators.joins.table_joiner import TableJoiner, with_rows
from potok.operators.tables.changes import same, settle
from potok.operators.tables.table_groups import GroupChanges
from potok.operators.windows.expiry import NEVER
from potok.records.keys import encode_keys
from potok.records.schemas.schema import Schema
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession
from potok.topology.nodes.joins import JoinKind


class ForeignKeys(GroupChanges):
    """Send each row to the row that it refers to. With `nulls_stay`, one that refers to none continues without it."""

    def __init__(
        self,
        name: str,
        task: Task,
        function: Function,
        expr: Expr | None,
        key_schema: Schema | None,
        *,
        nulls_stay: bool,
    ) -> None:
        super().__init__(name, task, function, expr, (key_schema, None), pairs=False)
        self._nulls_stay = nulls_stay

    def without_key(self, part: Chunk, rows: list[int], *, report: bool) -> list[int]:
        return [] if self._nulls_stay else rows


class Row(NamedTuple):
    """A row of either table, with the event time of its last change."""

    time: int
    value: Any


NOTHING = Row(NEVER, None)


Cause = tuple[int, int]
"""The position of the record that caused a change: input partition and offset."""


@dataclass(slots=True)
class Reference:
    """One row and the one it refers to, before and after this batch."""

    home: bytes
    left: Row
    right: Row
    new_left: Row
    new_right: Row
    stream_time: int
    cause: Cause
    headers: Any = None

    def is_update(self, how: JoinKind) -> bool:
        """Whether Kafka Streams emits it, even if the joined row does not change: not if there is no row, nor for a
        new row of an inner join that finds nothing.
        """
        if self.left.value is None and self.new_left.value is None:
            return False
        return self.left.value is not None or how is JoinKind.LEFT or self.new_right.value is not None


class Touched(NamedTuple):
    """A reference that this batch may have changed: the key referred to, the row's own key, and the cause."""

    key: bytes
    home: bytes
    stream_time: int
    cause: Cause
    headers: Any


@dataclass(slots=True)
class Held:
    """Cells of one table, before and after."""

    before: dict[bytes, bytes | None] = field(default_factory=dict)
    after: dict[bytes, Row] = field(default_factory=dict)

    def old(self, key: bytes) -> Row:
        data = self.before.get(key)
        return NOTHING if data is None else Row(*load_state(data))

    def new(self, key: bytes) -> Row:
        found = self.after.get(key)
        return self.old(key) if found is None else found

    def writes(self) -> list[tuple[bytes, bytes | None, bytes | None]]:
        cells = [(key, _cell(row), self.before.get(key)) for key, row in sorted(self.after.items())]
        return [cell for cell in cells if cell[1] != cell[2]]


def _cell(row: Row) -> bytes | None:
    return None if row.value is None else dump_state(tuple(row))


class MatchRows(Operator):
    """Store the rows by what they refer to, and the rows that are referred to. Index cells start with the key that a
    row refers to, so that a change of that one finds all its rows in one scan.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        joiner: TableJoiner,
        home_type: pa.DataType | None,
        session: StateSession,
        *,
        every_update: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._joiner, self._home_type, self._session = joiner, home_type, session
        self._every_update = every_update
        self._inputs = (SideInput(self), SideInput(self))
        self._by_key, self._rights = f"{name}/by_key", f"{name}/rights"

    @property
    def state_tables(self) -> list[str]:
        return [self._by_key, self._rights]

    def port(self, index: int) -> Receiver:
        return self._inputs[index]

    def finish(self) -> None:
        lefts, rights = (side.taken() for side in self._inputs)
        if not lefts and not rights:
            return
        right_keys, right_chunk = settle(rights) if rights else ([], None)
        right_chunk = None if right_chunk is None else data_changes(self, right_chunk)
        left_chunk = data_changes(self, concat(lefts)) if lefts else None
        foreign: list[bytes | None] = left_chunk.key.to_pylist() if left_chunk is not None else []  # type: ignore[union-attr]
        held = self._read_rights(right_keys, foreign)
        if right_chunk is not None:
            for key, row in zip(right_keys, _rows(right_chunk), strict=True):
                held.after[key] = row
        causes = {} if right_chunk is None else dict(zip(right_keys, _causes(right_chunk), strict=True))
        references = list(self._references(left_chunk, foreign, held, causes))
        self._session.write(self._rights, held.writes())
        self._emit_changes(references)

    def _read_rights(self, right_keys: list[bytes], foreign: list[bytes | None]) -> Held:
        keys = sorted({*right_keys, *(key for key in foreign if key is not None)})
        return Held(dict(zip(keys, self._session.read(self._rights, keys), strict=True)))

    def _references(
        self,
        chunk: Chunk | None,
        foreign: list[bytes | None],
        rights: Held,
        causes: dict[bytes, tuple[int, Cause, Any]],
    ) -> Iterable[Reference]:
        """Return all references that this batch may have changed: rows that changed, and those that refer to one that
        did."""
        index = Held()
        prefixes = {key: _prefix(key) for key in causes}
        scanned = self._session.rows_below(self._by_key, list(prefixes.values()))
        found: dict[bytes, Touched] = {}
        for key, cells in zip(prefixes, scanned, strict=True):
            for cell_key, data in cells:
                index.before[cell_key] = data
                found[cell_key] = Touched(key, cell_key[len(prefixes[key]) :], *causes[key])
        if chunk is not None:
            yield from self._changed(chunk, foreign, index, found)
        for cell_key, touched in sorted(found.items()):
            key = touched.key
            sides = index.old(cell_key), rights.old(key), index.new(cell_key), rights.new(key)
            yield Reference(touched.home, *sides, touched.stream_time, touched.cause, touched.headers)
        self._session.write(self._by_key, index.writes())

    def _changed(
        self, chunk: Chunk, foreign: list[bytes | None], index: Held, found: dict[bytes, Touched]
    ) -> Iterable[Reference]:
        """Put the rows that changed into the index; those that refer to nothing are not in it."""
        assert chunk.home is not None
        assert chunk.before is not None
        homes: list[bytes] = chunk.home.to_pylist()  # type: ignore[union-attr]
        olds = [plain(value) for value in python_rows(only_data(chunk.before)[0])]
        cells: list[bytes] = []
        for key, home, new, was, (stream_time, cause, headers) in zip(
            foreign, homes, _rows(chunk), olds, _causes(chunk), strict=True
        ):
            if key is None:
                old = NOTHING if was is None else Row(new.time, was)
                yield Reference(home, old, NOTHING, new, NOTHING, stream_time, cause, headers)
                continue
            cell = _prefix(key) + home
            index.after[cell] = new
            earlier = found[cell].stream_time if cell in found else NEVER
            found[cell] = Touched(key, home, max(stream_time, earlier), cause, headers)
            cells.append(cell)
        missing = [cell for cell in cells if cell not in index.before]
        index.before.update(zip(missing, self._session.read(self._by_key, missing), strict=True))

    def _emit_changes(self, references: list[Reference]) -> None:
        """Send the result of each row to its own shard."""
        references.sort(key=lambda reference: reference.home)
        homes = key_column(pa.array([reference.home for reference in references], pa.binary()), self._home_type)
        decoded_keys = python_rows(homes)
        before, _ = self._joiner.rows(
            decoded_keys, [r.left.value for r in references], [r.right.value for r in references]
        )
        after, errors = self._joiner.rows(
            decoded_keys, [r.new_left.value for r in references], [r.new_right.value for r in references]
        )
        times = np.array([max(r.new_left.time, r.new_right.time) for r in references], np.int64)
        reached = np.array([r.stream_time for r in references], np.int64)
        cause = np.array([r.cause for r in references], np.int64).reshape(-1, 2)
        if errors:
            pairs = [{"left": r.new_left.value, "right": r.new_right.value} for r in references]
            failed = change(homes, pairs, None, times, reached, cause)
            self.task.dead_letters.add(failed, with_rows(errors, pairs), self.step, Reason.ERROR)
        every = [self._every_update and reference.is_update(self._joiner.how) for reference in references]
        wanted = [row for row in range(len(references)) if every[row] or not same(before[row], after[row])]
        if wanted:
            columns = self._joiner.column(after), self._joiner.column(before)
            headers = headers_of([reference.headers for reference in references])
            causes = change(homes, *columns, times, reached, cause, headers)
            self.emit(causes.take(np.array(wanted, np.intp)))


def _prefix(key: bytes) -> bytes:
    """Return the prefix of the index cells of all rows that refer to a key, and of no others."""
    return len(key).to_bytes(4, "big") + key


def _rows(chunk: Chunk) -> list[Row]:
    values = [plain(value) for value in python_rows(chunk.value)]
    return [Row(time, value) for time, value in zip(chunk.timestamp.tolist(), values, strict=True)]


def _causes(chunk: Chunk) -> list[tuple[int, Cause, Any]]:
    """Return the stream time of each change, the record that caused it, and its headers."""
    causes: list[list[int]] = cause_of(chunk).tolist()
    headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()
    return [
        (time, (input_partition, offset), given)
        for time, (input_partition, offset), given in zip(chunk.stream_time.tolist(), causes, headers, strict=True)
    ]


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
            decoded_keys = key_column(pa.array([key for key, *_ in settled], pa.binary()), self._key_type)
            after, before = [values[came] for _, came, *_ in settled], [olds[left] for _, _, left, _ in settled]
            came_in = np.array([came for _, came, *_ in settled], np.intp)
            times, taken = chunk.timestamp[came_in], chunk.take(came_in)
            reached = np.array([stream_time for *_, stream_time in settled], np.int64)
            columns = self._column(after), self._column(before)
            made = change(decoded_keys, *columns, times, reached, taken.cause, taken.headers)
            made.order = by_position(taken.input_partition, taken.offset)
            self.emit(made)

    def _column(self, values: list[object]) -> Column:
        return values if self._value_type is None else pa.array(values, self._value_type)
