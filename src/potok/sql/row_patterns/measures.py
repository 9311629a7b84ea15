"""The rows that MATCH_RECOGNIZE returns: measures, and with ALL ROWS PER MATCH the columns of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.failures import RowFailures, add_rows
from potok.sql.expressions.compute import compute
from potok.sql.expressions.conversions.kept_dates import cannot_be_kept
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context
from potok.sql.row_patterns.leaves import CLASSIFIER, Frames, Leaf, Rows
from potok.sql.syntax import ast
from potok.sql.types import VARCHAR
from potok.topology.patterns.output import NO_VARIABLE, Emitted, Ints, MatchedRows

FILLER = "NOTHING"
"""A struct has at least one field."""


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Computes the rows of matches: one for each match, or one for each of its rows."""

    rows: ast.RowsPerMatch
    leaves: tuple[tuple[str, Leaf], ...]
    measures: tuple[tuple[str, Typed], ...]
    columns: tuple[tuple[str, pa.DataType], ...]
    """The columns of each row that are copied."""
    names: tuple[str, ...]
    """The variables by number, as CLASSIFIER shows them."""
    excluded: frozenset[int]

    @property
    def type(self) -> pa.DataType:
        fields = [*((name, typed.type) for name, typed in self.measures), *self.columns]
        return pa.struct(fields or [(FILLER, pa.bool_())])

    def __call__(self, rows: MatchedRows, failures: RowFailures) -> Emitted:
        matches, ends, at = self._records(rows)
        starts = rows.starts[matches]
        empty = rows.variables[starts] == NO_VARIABLE
        running = Frames(starts, np.where(empty, starts, ends), rows.numbers[matches])
        whole = Frames(starts, np.where(empty, starts, rows.starts[matches + 1]), rows.numbers[matches])
        given = Rows(self._given(rows), rows.variables)
        columns: dict[str, pa.Array] = {}
        for slot, leaf in self.leaves:
            context = Context()
            columns[slot] = leaf.compute(given, whole if leaf.final else running, context)
            if context.failures:
                add_rows(failures, slot, context.failures)
        unmatched = pa.array(~rows.found[matches])
        made = [self._measure(typed, columns, unmatched, failures) for _, typed in self.measures]
        made += [pc.struct_field(rows.values, name).take(pa.array(at)) for name, _ in self.columns]
        type_ = self.type
        values = pa.StructArray.from_arrays(made or [pa.nulls(len(matches), pa.bool_())], fields=list(type_))
        own_time = np.full(len(at), -1) if self.rows is ast.RowsPerMatch.ONE else at
        return Emitted(values, matches, own_time)

    def _records(self, rows: MatchedRows) -> tuple[Ints, Ints, Ints]:
        """Return the match of each record, the end of the rows that it sees, and the row whose columns it shows."""
        counts = np.diff(rows.starts)
        if self.rows is ast.RowsPerMatch.ONE:
            return np.arange(len(counts)), rows.starts[1:], rows.starts[1:] - 1
        matches = np.repeat(np.arange(len(counts)), counts)
        at = np.arange(len(rows.variables))
        rendered = ~np.isin(rows.variables, list(self.excluded))
        if self.rows is ast.RowsPerMatch.OMIT_EMPTY:
            rendered &= rows.variables != NO_VARIABLE
        return matches[rendered], at[rendered] + 1, at[rendered]

    def _given(self, rows: MatchedRows) -> dict[str, pa.Array]:
        found = {field.name: pc.struct_field(rows.values, field.name) for field in rows.values.type}
        names = pa.array([*self.names, None], VARCHAR)
        found[CLASSIFIER] = names.take(pa.array(np.where(rows.variables < 0, len(self.names), rows.variables)))
        return found

    def _measure(
        self, typed: Typed, columns: dict[str, pa.Array], unmatched: pa.Array, failures: RowFailures
    ) -> pa.Array:
        count, context = len(unmatched), Context()
        found = compute(typed, columns, count, context)
        far = cannot_be_kept(found)
        if far or context.failures:
            add_rows(failures, str(typed), {**far, **context.failures})
        hidden = np.isin(np.arange(count), list(far)) | unmatched.to_numpy(zero_copy_only=False)
        return found if not hidden.any() else found.take(pa.array(np.arange(count), mask=hidden))
