"""A join of a stream with a table: each record with the row of its key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, aligned_by, concat, concat_columns
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Receiver, Task
from potok.operators.core.processing_order import ProcessingOrder, Rows
from potok.operators.core.unserializable import data_changes
from potok.operators.exchange.shards import key_column
from potok.operators.joins.join_side import JoinSide, Port, project
from potok.operators.joins.pairing import Joiner
from potok.operators.stateless.stateless import Transform
from potok.operators.tables.changes import pick, present
from potok.records.schemas.schema import Schema
from potok.state.session import StateSession
from potok.topology.inference.joins import projected
from potok.topology.nodes.joins import JoinKind

Mask = npt.NDArray[np.bool_]


def own_rows(name: str) -> str:
    return f"{name}/rows"


class LookupKey(Transform):
    """Use another key for a lookup, and keep the record's own key."""

    def __init__(self, name: str, task: Task, function: Function, expr: Expr | None, schema: Schema | None) -> None:
        super().__init__(name, task, function, expr)
        self._schema = schema

    def process(self, chunk: Chunk) -> None:
        keys = self.result(chunk, self._schema)
        self.emit(self.drop(replace(chunk, key=keys.column, home=chunk.key), keys.errors))


class Joining(Operator):
    """What all joins of a stream with a table share: records, and the rows that were found or not."""

    def __init__(
        self, name: str, task: Task, how: JoinKind, joiner: Joiner, key_type: pa.DataType | None, sides: list[JoinSide]
    ) -> None:
        super().__init__(name, task)
        self._how, self._joiner, self._key_type = how, joiner, key_type
        self._ports = [Port(self, side) for side in sides]

    def port(self, index: int) -> Receiver:
        return self._ports[index]

    def taken(self, index: int) -> Chunk | None:
        """Return all records of one side."""
        chunks, self._ports[index].chunks = self._ports[index].chunks, []
        return concat(chunks) if chunks else None

    def join(self, chunk: Chunk, rows: Column, found: Mask) -> None:
        """Emit the records with their rows, under their own keys."""
        if self._how is JoinKind.INNER:
            numbers = np.flatnonzero(found)
            if len(numbers) < len(chunk):
                chunk, rows = chunk.take(numbers), pick(rows, numbers)
        if not len(chunk):
            return
        if chunk.home is not None:
            keys = chunk.home
        else:
            assert isinstance(chunk.key, pa.Array)
            keys = key_column(chunk.key, self._key_type)
        called = self._joiner(keys, chunk.value, rows)
        joined = replace(chunk, key=keys, value=called.column, home=None)
        self.emit(self.set_aside(joined, called.errors, Reason.ERROR))


class TableLookup(Joining):
    """Join each record with the row as of its turn.

    Inputs are aligned by time (`runtime/planning/alignment.py`), so a record sees the changes of earlier batches, and
    of this batch those whose cause precedes it in that order.

    The rows of a table that stores them as they are shown are read directly, under `table`; of any other table the
    join stores a copy. `fields` are those that the joiner reads of a row.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        how: JoinKind,
        joiner: Joiner,
        key_type: pa.DataType | None,
        row_type: pa.DataType | None,
        fields: tuple[str, ...] | None,
        sides: list[JoinSide],
        session: StateSession,
        table: str | None,
        turns: ProcessingOrder,
    ) -> None:
        super().__init__(name, task, how, joiner, key_type, sides)
        self._row_type, self._fields = projected(row_type, fields), fields
        self._session, self._table, self._turns = session, table, turns

    @property
    def state_tables(self) -> list[str]:
        return [] if self._table is not None else [own_rows(self.name)]

    def finish(self) -> None:
        changes, chunk = self.taken(1), self.taken(0)
        if changes is not None and self._table is None:
            changes = data_changes(self, changes)
            self._copy(changes)
        if chunk is not None:
            rows, found = self._look_up(chunk, changes)
            self.join(chunk, rows, found)

    def _copy(self, changes: Chunk) -> None:
        assert isinstance(changes.key, pa.Array)
        last = {key: row for row, key in enumerate(changes.key.to_pylist())}
        keys = list(last)
        table = own_rows(self.name)
        before = self._session.read(table, keys)
        values, times = python_rows(changes.value), changes.timestamp.tolist()
        after = [None if values[row] is None else encode_row(times[row], plain(values[row])) for row in last.values()]
        cells = zip(keys, after, before, strict=True)
        self._session.write(table, [cell for cell in cells if cell[1] is not None or cell[2] is not None])

    def _look_up(self, chunk: Chunk, changes: Chunk | None) -> tuple[Column, Mask]:
        """Return the row of each record; null if there is none."""
        assert isinstance(chunk.key, pa.Array)
        encoded = chunk.key.dictionary_encode()
        keys = encoded.dictionary
        which = encoded.indices.fill_null(len(keys)).to_numpy().astype(np.intp)
        changed = np.zeros(len(keys) + 1, np.bool_)
        if changes is not None:
            found = pc.index_in(changes.key, keys).fill_null(-1).to_numpy().astype(np.intp)
            changes, found = changes.where(found >= 0), found[found >= 0]
            changed[found] = True
        # A store finds sorted keys faster.
        order = pc.sort_indices(keys).to_numpy()
        wanted = order[~changed[order]]
        stored = self._stored(keys.take(pa.array(wanted)))
        index = np.full(len(keys) + 1, len(wanted), np.intp)
        index[wanted] = np.arange(len(wanted))
        rows, columns = index[which], [stored]
        if changes is not None and len(changes):
            numbers = np.flatnonzero(changed[which])
            rows[numbers] = len(stored) + self._visible(chunk.take(numbers), which[numbers], changes, found)
            assert changes.before is not None
            columns += [self._read(changes.value), self._read(changes.before)]
        column = pick(concat_columns(columns), rows)
        return column, present(column)

    def _visible(self, chunk: Chunk, which: Rows, changes: Chunk, found: Rows) -> Rows:
        """Return for each record the number of the last change of its key that precedes it or, after all of these,
        that of the first change of the key, whose previous row applies.
        """
        count = len(changes)
        if aligned_by(changes).max() < aligned_by(chunk).min():
            last = np.zeros(int(which.max()) + 1, np.intp)
            is_found = found < len(last)
            last[found[is_found]] = np.flatnonzero(is_found)
            return last[which]
        ids = np.append(found, which)
        order = np.lexsort((*self._turns.sort_keys(changes, chunk), ids))
        is_change, ids = order < count, ids[order]
        at = np.maximum.accumulate(np.where(is_change, np.arange(len(order)), -1))
        sees = (at >= 0) & (ids[at] == ids)
        first = np.full(int(ids.max()) + 1, -1, np.intp)
        first[found[::-1]] = np.arange(count)[::-1]
        visible = np.where(sees, order[at], count + first[ids])
        numbers = np.empty(len(chunk), np.intp)
        numbers[order[~is_change] - count] = visible[~is_change]
        return numbers

    def _stored(self, keys: pa.Array) -> Column:
        """Return the rows before this batch, and an empty one for records without a key."""
        cells = self._session.read(self._table or own_rows(self.name), keys.to_pylist())
        load: Callable[[bytes], Any] = decode_row
        values = [None if cell is None else load(cell)[1] for cell in cells]
        values.append(None)
        return values if self._row_type is None else pa.array(values, self._row_type)

    def _read(self, rows: Column) -> Column:
        """Return changed rows with the fields that are read of stored ones."""
        return rows if self._fields is None else project(rows, self._fields)
