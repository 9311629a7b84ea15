"""Groups of rows: a row that leaves a group is removed from its aggregate, one that joins is added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.aggregates.aggregates import change
from potok.operators.core.call import (
    Errors,
    call_python,
    call_traced,
    describe_error,
    must_fit,
    plain,
    plain_all,
    python_rows,
)
from potok.operators.core.chunk import Chunk, Column, concat, in_order
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task
from potok.operators.core.record_order import by_position
from potok.operators.exchange.shards import key_column
from potok.operators.tables.changes import present, same
from potok.operators.tables.group_accumulators import GroupAccumulator, identity
from potok.operators.windows.expiry import NEVER
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

Selector = tuple[Function, Expr | None]
Move = tuple[int, Any]
"""A row of the chunk, and what it adds to a group or removes from it."""


@dataclass(slots=True)
class Group:
    """The aggregate of one group, and how many rows it holds.

    `refused` counts the values at which the adder raised: they were never added, so they are not removed.
    """

    time: int = NEVER
    members: int = 0
    state: Any = None
    refused: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes | None) -> Group:
        return cls() if data is None else cls(*load_state(data))

    def to_bytes(self, stored: Any, *, keeps_empty: bool) -> bytes | None:
        """Serialize the group with its aggregate; None if it is empty, unless empty groups are kept."""
        if not self.members and not self.refused and not keeps_empty:
            return None
        return dump_state((self.time, self.members, stored, self.refused))

    def refuse(self, value: Any) -> None:
        name = identity(value)
        self.refused[name] = self.refused.get(name, 0) + 1

    def was_refused(self, value: Any) -> bool:
        """Whether a value to be removed had never been added; it is then no longer counted as refused."""
        if not self.refused:
            return False
        name = identity(value)
        count = self.refused.pop(name, 0)
        if count > 1:
            self.refused[name] = count - 1
        return count > 0


class AccumulateGroups(Operator):
    """One aggregate per group. In a batch, rows are removed first, then added, in the order of the rows' own keys: so
    the result does not depend on how the rows were distributed over shards.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        accumulator: GroupAccumulator,
        selector: Selector | None,
        types: tuple[pa.DataType | None, pa.DataType | None],
        session: StateSession,
        *,
        checked: bool,
        keeps_empty: bool = False,
        every_update: bool = False,
    ) -> None:
        """Args:
        keeps_empty: Keep a group whose last row left, with the aggregate of no rows.
        every_update: Emit a change for every row that is added or removed, even if the aggregate stays the same.
        """
        super().__init__(name, task)
        self._keeps_empty, self._every_update = keeps_empty, every_update
        self._accumulator, self._selector, self._session, self._checked = accumulator, selector, session, checked
        self._key_type, self._result_type = types
        self._table = f"{name}/groups"
        self._chunks: list[Chunk] = []

    @property
    def state_tables(self) -> list[str]:
        return [self._table]

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        if self._chunks:
            chunk = concat(self._chunks)
            self._chunks = []
            self._fold(chunk)

    def _fold(self, chunk: Chunk) -> None:
        assert isinstance(chunk.key, pa.Array)
        assert chunk.home is not None
        assert chunk.before is not None
        leaving = self._moves(chunk.with_value(chunk.before), report=False)
        coming = self._moves(chunk, report=True)
        rows_of: dict[bytes, list[int]] = {}
        keys, homes = chunk.key.to_pylist(), chunk.home.to_pylist()  # type: ignore[union-attr]
        for row in sorted(range(len(keys)), key=lambda row: (keys[row], homes[row])):
            if row in leaving or row in coming or self._keeps_empty:
                rows_of.setdefault(keys[row], []).append(row)
        cell_keys = list(rows_of)
        before = self._session.read(self._table, cell_keys)
        decoded_keys = python_rows(key_column(pa.array(cell_keys, pa.binary()), self._key_type))
        turn = _Turn(self._accumulator, self._stored, keeps_empty=self._keeps_empty)
        old, new = [self._aggregate_of(Group.of(data), there=data is not None) for data in before], []
        cells: list[bytes | None] = []
        for key, data, rows in zip(decoded_keys, before, rows_of.values(), strict=True):
            leave, come = ([(row, side[row]) for row in rows if row in side] for side in (leaving, coming))
            group, cell = turn.run(key, data, int(chunk.timestamp[rows].max()), leave, come)
            new.append(group)
            cells.append(cell)
        if turn.errors:
            shown_chunk = chunk.with_key(key_column(chunk.key, self._key_type))
            self.task.dead_letters.add(shown_chunk, turn.errors, self.name, Reason.ERROR)
        writes = [(key, cell, data) for key, cell, data in zip(cell_keys, cells, before, strict=True)]
        self._session.write(self._table, [write for write in writes if write[1] != write[2]])
        reached = np.array([chunk.stream_time[rows].max() for rows in rows_of.values()], np.int64)
        headers = None if chunk.headers is None else chunk.headers.take(pa.array([max(r) for r in rows_of.values()]))
        loses = np.array([not any(row in coming for row in rows) for rows in rows_of.values()], np.bool_)
        self._emit_changes(cell_keys, old, new, reached, loses, headers)

    def _moves(self, chunk: Chunk, *, report: bool) -> dict[int, Any]:
        """Return what each row of one side adds to its group or removes from it, by the number of the row."""
        rows = np.flatnonzero(present(chunk.value))
        if self._selector is None:
            values, errors = python_rows(chunk.take(rows).value), Errors()
        else:
            part = chunk.take(rows).with_key(key_column(chunk.take(rows).key, self._key_type))
            values, errors = self._select(part, *self._selector, report=report)
            if errors and report:
                self.task.dead_letters.add(part, errors, self.name, Reason.ERROR)
        return {row: value for i, (row, value) in enumerate(zip(rows.tolist(), values, strict=True)) if i not in errors}

    def _select(self, part: Chunk, function: Function, expr: Expr | None, *, report: bool) -> tuple[list[Any], Errors]:
        if expr is not None:
            called = call_traced(expr, function, part, self.task.failures if report else None)
            return python_rows(called.column), called.errors
        results, errors = call_python(function, part)
        return plain_all(results), errors

    def _stored(self, group: Group) -> Any:
        """Return the aggregate of a group as data, if it fits its type."""
        if not group.members:
            return None
        if self._checked and self._result_type is not None:
            must_fit(self._accumulator.result(group.state), self._result_type)
        return self._accumulator.stored(group.state)

    def _emit_changes(
        self,
        cell_keys: list[bytes],
        previous: list[Any],
        new: list[Group],
        reached: npt.NDArray[np.int64],
        loses: npt.NDArray[np.bool_],
        headers: pa.Array | None,
    ) -> None:
        """Emit the changes of the groups; with `every_update`, those that only lost rows first."""
        after = [self._aggregate_of(group, there=True) for group in new]
        changed = [row for row in range(len(new)) if self._every_update or not same(after[row], previous[row])]
        if changed:
            keys = key_column(pa.array([cell_keys[row] for row in changed], pa.binary()), self._key_type)
            times = np.array([new[row].time for row in changed], np.int64)
            new_column, old_column = (self._column([values[row] for row in changed]) for values in (after, previous))
            changed_headers = None if headers is None else headers.take(pa.array(changed))
            made = change(keys, new_column, old_column, times, reached[changed], headers=changed_headers)
            if self._every_update:
                made.order = by_position(made.input_partition, np.where(loses[changed], -1, made.offset))
            self.emit(in_order(made))

    def _aggregate_of(self, group: Group, *, there: bool) -> Any:
        if group.members:
            return plain(self._accumulator.result(group.state))
        return plain(self._accumulator.result(self._accumulator.start())) if there and self._keeps_empty else None

    def _column(self, values: list[Any]) -> Column:
        return values if self._result_type is None else pa.array(values, self._result_type)


class _Turn:
    """Apply moves to groups. A function that raises leaves its group as it was before that move."""

    def __init__(self, accumulator: GroupAccumulator, stored: Callable[[Group], Any], *, keeps_empty: bool) -> None:
        self._accumulator, self._stored, self._keeps_empty = accumulator, stored, keeps_empty
        self.errors: Errors = {}

    def run(
        self, key: Any, data: bytes | None, time: int, leaving: list[Move], coming: list[Move]
    ) -> tuple[Group, bytes | None]:
        group = Group.of(data)
        group.time = max(group.time, time)
        try:
            for _, value in leaving:
                self._leave(group, key, value)
            for _, value in coming:
                self._come(group, key, value)
            return group, group.to_bytes(self._stored(group), keeps_empty=self._keeps_empty)
        except Exception:  # noqa: BLE001 - the user's function may raise anything; all is done again, move by move
            return self._carefully(key, data, time, leaving, coming)

    def _carefully(
        self, key: Any, data: bytes | None, time: int, leaving: list[Move], coming: list[Move]
    ) -> tuple[Group, bytes | None]:
        group = Group.of(data)
        group.time = max(group.time, time)
        members, saved = group.members, dump_state(group.state)
        for number, (row, value) in enumerate([*leaving, *coming]):
            comes = number >= len(leaving)
            try:
                (self._come if comes else self._leave)(group, key, value)
                saved = dump_state(self._stored(group))
            except Exception as error:  # noqa: BLE001
                self.errors[row] = describe_error(error)
                # A row that could not be added is refused; one that could not be removed is gone all the same.
                group.members, group.state = members if comes else max(members - 1, 0), load_state(saved)
                if comes:
                    group.refuse(value)
            members = group.members
        group.state = load_state(saved)
        return group, group.to_bytes(group.state if members else None, keeps_empty=self._keeps_empty)

    def _leave(self, group: Group, key: Any, value: Any) -> None:
        if group.was_refused(value) or not group.members:
            return
        group.members -= 1
        group.state = self._accumulator.subtract(group.state, key, value) if group.members else None

    def _come(self, group: Group, key: Any, value: Any) -> None:
        state = group.state if group.members else self._accumulator.start()
        group.state = self._accumulator.add(state, key, value)
        group.members += 1
