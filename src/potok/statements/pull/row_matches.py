"""MATCH_RECOGNIZE over existing rows: none follows the last one, so `$` can match and all matches end."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.computed import Computed
from potok.expressions.failures import RowFailures
from potok.expressions.function import Function
from potok.operators.core.chunk import Ints, as_objects
from potok.operators.patterns.machine import Found, Machine
from potok.operators.patterns.open_runs import Runs
from potok.operators.patterns.runs import Row, taken
from potok.operators.patterns.ties import ranks_of
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import ROWTIME, slot_of
from potok.sql.budget import check_time, reserve
from potok.sql.errors import Refused
from potok.sql.expressions.typed import columns_of
from potok.sql.functions.function import Context
from potok.sql.planner.computing import SqlComputation
from potok.sql.row_patterns.analyse import MatchAnalysis
from potok.sql.syntax import ast
from potok.sql.types import BIGINT
from potok.statements.frames import Frame
from potok.topology.patterns.output import NO_VARIABLE, MatchedRows
from potok.topology.patterns.program import ACCEPT, Program, compile_pattern

_POSITION = ("ROWPARTITION", "ROWOFFSET")
_CHECK_EVERY = 1_000


def slots_to_match(relation: RelationAnalysis) -> frozenset[str]:
    """Return the slots of rows that are needed to match them."""
    match, alias = _match_of(relation), relation.relation.row_alias or relation.relation.name
    used = {field.slot for field in (*match.read, *match.partition)}
    for _, typed in match.tie_expressions:
        used |= {field.slot for field in match.rows.fields if field.slot in columns_of(typed)}
    return frozenset(used | {slot_of(alias, name) for name in (ROWTIME, *_POSITION)})


def matched_rows(rows: Frame, relation: RelationAnalysis, context: Context) -> Frame:
    """Return the result of MATCH_RECOGNIZE, partition after partition."""
    return _Matching(rows, relation, context).result()


def _match_of(relation: RelationAnalysis) -> MatchAnalysis:
    assert relation.match is not None
    return relation.match


class _Matching:
    def __init__(self, rows: Frame, relation: RelationAnalysis, context: Context) -> None:
        self._match, self._relation, self._context = _match_of(relation), relation, context
        self._alias = relation.relation.row_alias or relation.relation.name
        self._failures: RowFailures = {}
        groups = _groups([rows.columns[field.slot] for field in self._match.partition], rows.rows)
        order = self._order(rows, groups)
        self._rows, self._groups = rows.take(order), groups[order]
        self._times = np.asarray(self._column(ROWTIME).to_numpy(zero_copy_only=False), np.int64)
        self._program = compile_pattern(self._match.pattern)
        self._values = self._shifted()
        reserve(self._values.nbytes)

    def _column(self, name: str) -> pa.Array:
        return self._rows.columns[slot_of(self._alias, name)]

    def _order(self, rows: Frame, groups: Ints) -> Ints:
        """Order rows by partition, time, the rest of ORDER BY, and position."""
        match = self._match
        keys: list[Any] = [rows.columns[slot_of(self._alias, name)].to_numpy() for name in reversed(_POSITION)]
        made = rows.computed([typed for _, typed in match.tie_expressions], self._context)
        for column, tie in reversed(list(zip(made, match.ties, strict=True))):
            keys.append(ranks_of(column, descending=tie.descending, nulls_first=tie.nulls_first))
        times = rows.columns[slot_of(self._alias, ROWTIME)].to_numpy(zero_copy_only=False)
        return np.lexsort((*keys, times, groups))

    def _shifted(self) -> pa.StructArray:
        """Return the columns that are read, with those of neighbouring rows of a partition."""
        columns = {field.name: self._rows.columns[field.slot] for field in self._match.read}
        number = np.arange(self._rows.rows)
        for shift in self._match.shifts:
            at = number + shift.by
            inside = (at >= 0) & (at < len(number))
            at = np.where(inside, at, 0)
            inside &= self._groups[at] == self._groups if len(number) else inside
            columns[shift.name] = columns[shift.field].take(pa.array(at, mask=~inside))
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        if not fields:
            return pa.StructArray.from_arrays([pa.nulls(len(number), pa.bool_())], names=["NOTHING"])
        return pa.StructArray.from_arrays(list(columns.values()), fields=fields)

    def _bits(self) -> Ints:
        """Evaluate the conditions that depend on the row alone, each as a bit."""
        bits = np.zeros(self._rows.rows, np.int64)
        for number, one in enumerate(self._match.pattern.definitions):
            if one.condition is None or one.iterative:
                bits |= 1 << number
            else:
                bits |= self._truth(one.condition).astype(np.int64) << number
        return bits

    def _truth(self, condition: Function) -> np.ndarray[Any, Any]:
        expr = condition.expr
        assert isinstance(expr, Computed)
        assert isinstance(expr.compute, SqlComputation)
        columns = [pc.struct_field(self._values, slot) for slot in expr.compute.slots]
        found = expr.compute(columns, self._rows.rows, self._failures)
        return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)

    def result(self) -> Frame:
        items = self._items()
        match = self._match
        rows: list[tuple[int, int]] = []
        starts = [0]
        for found in items:
            took = taken(found.link) or [(NO_VARIABLE, found.link.row)]
            rows += [(variable, row.offset) for variable, row in took]
            starts.append(len(rows))
        at = np.array([row for _, row in rows], np.int64)
        made = match.output(
            MatchedRows(
                self._values.take(pa.array(at)),
                np.array([variable for variable, _ in rows], np.int64),
                np.array(starts, np.int64),
                np.array([found.number for found in items], np.int64),
                np.array([not found.unmatched for found in items], np.bool_),
            ),
            self._failures,
        )
        for text, reasons in self._failures.items():
            for number, reason in reasons.items():
                self._context.failures.setdefault(number, f"{text}: {reason}")
        first = at[np.array(starts[:-1], np.int64)[made.matches]] if len(items) else at
        times = np.array([found.time for found in items], np.int64)[made.matches]
        rendered = np.where(made.rows >= 0, self._times[at[np.maximum(made.rows, 0)]], times) if len(items) else times
        keys = {field.name: self._rows.columns[field.slot].take(pa.array(first)) for field in match.partition}
        columns: dict[str, pa.Array] = {}
        for field in self._relation.fields:
            if field.name == ROWTIME:
                columns[field.slot] = pa.array(rendered, BIGINT)
            else:
                key = keys.get(field.name)
                columns[field.slot] = pc.struct_field(made.values, field.name) if key is None else key
        return Frame(columns, len(made.matches))

    def _items(self) -> list[Found]:
        """Return the matches of all partitions."""
        match, clause = self._match, self._match.clause
        unmatched = clause.rows is ast.RowsPerMatch.UNMATCHED
        iterative = {
            number: one.condition.callable
            for number, one in enumerate(match.pattern.definitions)
            if one.condition is not None and one.iterative
        }
        machine = Machine(
            self._program,
            iterative,
            match.after,
            match.pattern.semantics,
            match.pattern.within_ms,
            sys.maxsize,
            lambda value: value,
            numbered=True,
            unmatched=unmatched,
        )
        bits, values = self._bits().tolist(), as_objects(self._values)
        firsts = _firsts(self._program)
        found: list[Found] = []
        runs, group = Runs(), -1
        groups, times = self._groups.tolist(), self._times.tolist()
        for number, (own, time) in enumerate(zip(groups, times, strict=True)):
            if number % _CHECK_EVERY == 0:
                check_time()
            starts = own != group
            if starts:
                self._finish(machine, runs, found)
                runs, group = Runs(), own
            machine.expire(runs, time)
            begin = not firsts or bool(bits[number] & firsts) or unmatched
            if begin or runs.size:
                row = Row(number, time, values[number], "", 0, number)
                machine.accept(runs, row, bits[number], begin=begin, at_start=starts)
            self._check(machine)
        self._finish(machine, runs, found)
        return [one for one in found if clause.timeouts or not one.over]

    def _finish(self, machine: Machine, runs: Runs, found: list[Found]) -> None:
        machine.end(runs, 0)
        found += machine.found
        machine.found.clear()

    def _check(self, machine: Machine) -> None:
        if machine.dropped:
            error = machine.dropped[0].error
            hint = "make the pattern more specific, or add WITHIN"
            raise Refused(error, hint=hint, location=self._match.clause.pattern.at)


def _firsts(program: Program) -> int:
    """Return the conditions of which a row must satisfy one to begin a match; 0 if any row can."""
    begins = {*program.begin, *program.begin_first}
    variables = [program.states[state].variable for state in begins]
    if ACCEPT in begins or any(variable is None for variable in variables):
        return 0
    return sum({1 << variable for variable in variables if variable is not None})


def _groups(columns: list[pa.Array], rows: int) -> Ints:
    """Number the rows by the values of some columns, in order of appearance."""
    groups = np.zeros(rows, np.int64)
    for column in columns:
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        _, first, inverse = np.unique(groups * (rows + 1) + codes, return_index=True, return_inverse=True)
        ranks = np.empty(len(first), np.int64)
        ranks[np.argsort(first)] = np.arange(len(first))
        groups = ranks[inverse]
    return groups
