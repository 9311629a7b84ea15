"""Conditions of DEFINE that depend on rows before the current one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.functions.function import Context
from potok.sql.row_patterns.leaves import CLASSIFIER, Aggregate, Frames, Leaf, Pick, Rows
from potok.sql.types import VARCHAR


class SoFar(Protocol):
    """The rows of a match so far: the number of the variable and the value of each."""

    @property
    def rows(self) -> list[tuple[int, Any]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """Whether the current row can be taken as `variable`, given the rows that were taken before."""

    expression: Typed
    leaves: tuple[tuple[str, Leaf], ...]
    variable: int
    names: tuple[str, ...]
    """The variables by number, as CLASSIFIER shows them."""
    types: dict[str, pa.DataType]
    """The fields of a row that are read."""

    def __call__(self, value: Any, so_far: SoFar) -> bool:
        rows = [*so_far.rows, (self.variable, value)]
        columns = {
            slot: pa.array([value[slot]], self.types[slot])
            for slot in columns_of(self.expression)
            if slot in self.types
        }
        for slot, leaf in self.leaves:
            columns[slot] = self._leaf(leaf, rows)
        return compute(self.expression, columns, 1, Context())[0].as_py() is True

    def _leaf(self, leaf: Leaf, rows: Sequence[tuple[int, Any]]) -> pa.Array:
        if leaf.variables is not None:
            rows = [row for row in rows if row[0] in leaf.variables]
        if isinstance(leaf, Pick):
            index = leaf.offset if leaf.from_first else len(rows) - 1 - leaf.offset
            if not 0 <= index < len(rows):
                return pa.nulls(1, leaf.type)
            expression = leaf.expression
            if isinstance(expression, ColumnRef) and expression.column != CLASSIFIER:
                return pa.array([rows[index][1][expression.column]], leaf.type)
            return compute(expression, self._columns([rows[index]], [expression]), 1, Context())
        assert isinstance(leaf, Aggregate)
        columns = self._columns(rows, leaf.arguments)
        variables = np.array([number for number, _ in rows], np.int64)
        start, end = np.zeros(1, np.int64), np.full(1, len(rows), np.int64)
        return leaf.compute(Rows(columns, variables), Frames(start, end, start), Context())

    def _columns(self, rows: Sequence[tuple[int, Any]], expressions: Sequence[Typed]) -> dict[str, pa.Array]:
        slots = {slot for expression in expressions for slot in columns_of(expression)}
        found = {
            slot: pa.array([value[slot] for _, value in rows], self.types[slot]) for slot in slots if slot in self.types
        }
        if CLASSIFIER in slots:
            found[CLASSIFIER] = pa.array([self.names[number] for number, _ in rows], VARCHAR)
        return found
