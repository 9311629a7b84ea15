"""Call a user's function with columns of many records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.errors import QueryError
from potok.expressions.function import Function
from potok.operators.core.call import Errors, describe_error
from potok.operators.core.chunk import Chunk, Column, concat_columns
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task
from potok.operators.stateless import frames
from potok.operators.stateless.row_independence import check_independent
from potok.operators.tables.changes import present
from potok.topology.nodes import MapBatches as Node

Rows = npt.NDArray[np.intp]

_MODELS: WeakKeyDictionary[Function, Any] = WeakKeyDictionary()
"""What each `setup` returned. A worker holds a plan, and so its functions, for many batches."""


class SetupFailedError(QueryError):
    """A `setup` that raised."""

    def __init__(self, step: str, error: Exception) -> None:
        super().__init__(
            f'setup= of step "{step}" failed: {describe_error(error)}',
            hint="nothing was skipped: correct it and start the query again. It runs in every worker process",
        )


@dataclass(slots=True)
class Mapped:
    """The results for some records: columns, and which record each result belongs to; and the records that failed."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    errors: Errors = field(default_factory=dict)

    def add(self, column: Column, rows: Rows) -> None:
        self.columns.append(column)
        self.rows.append(rows)

    def in_order(self) -> tuple[Column, Rows]:
        """Return all results in the order of their records, without those of records that failed."""
        column, rows = concat_columns(self.columns), np.concatenate(self.rows)
        order = np.argsort(rows, kind="stable")
        if self.errors:
            order = order[~np.isin(rows[order], list(self.errors))]
        if np.array_equal(order, np.arange(len(rows))):
            return column, rows
        if isinstance(column, list):
            return [column[i] for i in order.tolist()], rows[order]
        return column.take(pa.array(order)), rows[order]


class MapBatches(Operator):
    """Replace the values. A call that fails is repeated with the halves of its records, down to single ones.

    Args:
        compares: Call the function again with other chunks of the records, and raise if a result differs.
    """

    def __init__(self, node: Node, task: Task, *, compares: bool = False) -> None:
        super().__init__(node.name, task)
        self._node, self._compares = node, compares

    def process(self, chunk: Chunk) -> None:
        there = np.flatnonzero(present(chunk.value))
        mapped = self._mapped(chunk, there)
        if self._compares:
            check_independent(self.name, there, mapped, lambda rows: self._mapped(chunk, rows), chunk)
        absent = np.setdiff1d(np.arange(len(chunk)), there)
        if len(absent):
            mapped.add(self._nulls(len(absent)), absent)
        if mapped.errors:
            self.task.dead_letters.add(chunk, mapped.errors, self.name, Reason.ERROR)
        if mapped.columns:
            column, rows = mapped.in_order()
            one_each = len(rows) == len(chunk) and not self._node.row_column
            self.emit((chunk if one_each else chunk.take(rows)).with_value(column))

    def _mapped(self, chunk: Chunk, rows: Rows) -> Mapped:
        """Return the results for some records of a chunk, in the order of `rows`."""
        mapped = Mapped()
        if len(rows):
            part = chunk if len(rows) == len(chunk) and np.array_equal(rows, np.arange(len(rows))) else chunk.take(rows)
            assert not isinstance(part.value, list)
            table = frames.table_of(part.value, part.key if self._node.with_key else None)
            self._call(table, rows, self._model(), mapped)
        return mapped

    def _call(self, table: pa.Table, rows: Rows, model: tuple[Any, ...], mapped: Mapped) -> None:
        try:
            column, numbers, errors = self._result(table, model)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            if len(rows) == 1:
                text = str(error) if isinstance(error, frames.ResultMisfitError) else describe_error(error)
                mapped.errors[int(rows[0])] = text
                return
            middle = len(rows) // 2
            self._call(table.slice(0, middle), rows[:middle], model, mapped)
            self._call(table.slice(middle), rows[middle:], model, mapped)
            return
        mapped.errors |= {int(rows[numbers[at]]): text for at, text in errors.items()}
        mapped.add(column, rows[numbers])

    def _result(self, table: pa.Table, model: tuple[Any, ...]) -> tuple[Column, Rows, Errors]:
        """Return the results of one call, and the row that each belongs to."""
        numbers, name = np.arange(len(table)), self._node.row_column
        if name:
            table = table.append_column(name, pa.array(numbers))
        found = frames.columns_of(self._node.function(frames.frame_of(table, self._node.format), *model))
        if name:
            if isinstance(found, pa.Array):
                raise frames.ResultMisfitError(f'the result has no column "{name}"')
            found, numbers = frames.take_rows(found, name)
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(table):
                raise frames.ResultMisfitError(f'the column "{name}" of the result has other numbers than it was given')
        elif len(found) != len(table):
            hint = "pass row_column= to return any number of rows"
            raise frames.ResultMisfitError(f"the result has {len(found)} rows for {len(table)}; {hint}")
        decoded = frames.fitted(found, self._node.schema)
        return decoded.column, numbers, decoded.errors

    def _model(self) -> tuple[Any, ...]:
        """Return the arguments after the frame."""
        setup = self._node.setup
        if setup is None:
            return ()
        if setup not in _MODELS:
            try:
                _MODELS[setup] = setup()
            except Exception as error:
                raise SetupFailedError(self.name, error) from error
        return (_MODELS[setup],)

    def _nulls(self, count: int) -> Column:
        schema = self._node.schema
        return [None] * count if schema is None else pa.nulls(count, schema.arrow)
