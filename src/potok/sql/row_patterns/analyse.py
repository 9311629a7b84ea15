"""Analyse MATCH_RECOGNIZE: resolve variables and columns, type conditions and measures, check the pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from potok.expressions.computed import Computed
from potok.expressions.expr import Column
from potok.expressions.function import Function
from potok.sql.analysis.form import Form
from potok.sql.analysis.scope import PSEUDO, ROWTIME, Field, Rows, RowScope, resolve, rows_with, source_fields
from potok.sql.catalog import Catalog, Source
from potok.sql.errors import Refused, SqlTypeError, UnknownName, closest
from potok.sql.expressions import nodes
from potok.sql.expressions.check import check
from potok.sql.expressions.compute import compute
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of, walk
from potok.sql.functions.function import Context
from potok.sql.planner.computing import SqlComputation, function_for
from potok.sql.row_patterns.check import check_clauses, check_pattern
from potok.sql.row_patterns.conditions import Condition
from potok.sql.row_patterns.leaves import Aggregate, Leaf, Pick
from potok.sql.row_patterns.measures import Measures
from potok.sql.row_patterns.scope import PatternScope, Variables
from potok.sql.row_patterns.tree import EXCLUDED, PatternTree, tree_of
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.row_pattern_text import show_pattern
from potok.sql.syntax.walk import calls_of
from potok.sql.types import BOOLEAN, NULL, quoted, type_name
from potok.topology.patterns.output import Shift, TieOrder
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import AfterMatch, Definition, Semantics, SkipTo

PRESENT = ("UNIX_TIMESTAMP", "UNIX_DATE")


@dataclass(frozen=True, slots=True)
class MatchAnalysis:
    """A checked MATCH_RECOGNIZE. Conditions and measures read the fields of rows by the names of columns."""

    clause: ast.MatchRecognize
    rows: Rows
    """The rows that are matched."""
    partition: tuple[Field, ...]
    ties: tuple[TieOrder, ...]
    tie_expressions: tuple[tuple[str, Typed], ...]
    pattern: Pattern
    after: AfterMatch
    shifts: tuple[Shift, ...]
    output: Measures
    numbered: bool
    read: tuple[Field, ...]
    """The columns that rows have."""
    fields: tuple[Field, ...]
    """The columns of the result."""


def analyse_match(catalog: Catalog, relation: ast.Relation, source: Source, form: Form) -> MatchAnalysis:
    assert relation.match is not None
    return _Analyser(catalog, relation, relation.match, source, form).analyse()


class _Analyser:
    def __init__(
        self, catalog: Catalog, relation: ast.Relation, clause: ast.MatchRecognize, source: Source, form: Form
    ) -> None:
        self._clause, self._relation, self._form, self._types = clause, relation, form, catalog.types
        self._source = source
        alias = relation.row_alias or relation.name
        self._rows = rows_with(source_fields(source, alias, positions=True), is_table=False)
        self._fields = {field.name: field for field in self._rows.fields}

    def analyse(self) -> MatchAnalysis:
        clause = self._clause
        self._check_source()
        check_clauses(clause, bounded=self._form is Form.PULL)
        partition = tuple(self._partition_column(part) for part in clause.partition_by)
        ties = self._order()
        tree = tree_of(clause.pattern)
        variables = tree.variables(clause.subsets)
        self._check_definitions(variables)
        shifts: dict[Shift, None] = {}
        definitions = self._definitions(tree, variables, shifts)
        pattern = Pattern(
            tree.tree, definitions, clause.within_ms, Semantics.PREFERRED, text=show_pattern(clause.pattern)
        )
        after = self._after(tree, variables)
        never, always = self._constant(tree, definitions)
        check_pattern(clause, pattern, after, never, always, bounded=self._form is Form.PULL)
        output, numbered, fields = self._output(tree, variables, partition, shifts)
        expressions = tuple((f"order.{number}", typed) for number, (typed, _) in enumerate(ties))
        return MatchAnalysis(
            clause,
            self._rows,
            partition,
            tuple(
                TieOrder(name, item.descending, _nulls_first(item))
                for (name, _), (_, item) in zip(expressions, ties, strict=True)
            ),
            expressions,
            pattern,
            after,
            tuple(shifts),
            output,
            numbered,
            self._read(definitions, output, tuple(shifts)),
            fields,
        )

    def _check_source(self) -> None:
        name, clause = quoted(self._source.name), self._clause
        if self._source.is_table:
            hint = "rows of a table have no order in time; match the stream that the table is made of"
            raise Refused(f"{name} is a table, and MATCH_RECOGNIZE needs a stream", hint=hint, location=clause.at)
        if self._source.window is not None:
            hint = "copy it into a stream with the window in columns, and match that"
            raise Refused(f"{name} has windows in its key", hint=hint, location=clause.at)
        present = next((c for c in calls_of(clause) if c.name in PRESENT and not c.arguments), None)
        if present is not None:
            hint = "use ROWTIME, or call it in the SELECT"
            message = (
                f"{present.name}() is not allowed in MATCH_RECOGNIZE: a match would depend on when it is processed"
            )
            raise Refused(message, hint=hint, location=present.at)

    def _partition_column(self, part: ast.Expression) -> Field:
        if not isinstance(part, ast.Name):
            hint = "compute it as a column of a stream first: CREATE STREAM ... AS SELECT"
            raise Refused(f"{show(part)} is not a column", hint=hint, location=part.at)
        found = resolve(self._rows, part)
        if found.name in PSEUDO:
            raise Refused(f"{found.name} cannot partition rows", hint="use a column", location=part.at)
        return found

    def _order(self) -> list[tuple[Typed, ast.OrderItem]]:
        """Rows are in the order of event time; other expressions order rows of the same time."""
        items = self._clause.order_by
        if not items:
            hint = "add ORDER BY ROWTIME behind PARTITION BY"
            raise Refused("MATCH_RECOGNIZE needs an order", hint=hint, location=self._clause.at)
        first = items[0]
        if not isinstance(first.expression, ast.Name) or not self._is_time(first.expression) or first.descending:
            hint = "write ORDER BY ROWTIME, and then what orders rows of the same time"
            message = "the order of a stream must begin with its event time, ascending"
            raise Refused(message, hint=hint, location=first.at)
        found = []
        for item in items[1:]:
            typed = check(item.expression, RowScope(self._rows, self._types))
            if pa.types.is_nested(typed.type):
                hint = "order by one of its fields or items"
                raise SqlTypeError(f"{type_name(typed.type)} has no order", hint=hint, location=item.at)
            found.append((typed, item))
        return found

    def _is_time(self, name: ast.Name) -> bool:
        found = resolve(self._rows, name)
        return found.name == ROWTIME or (bool(self._source.timestamp) and found.name == self._source.timestamp)

    def _check_definitions(self, variables: Variables) -> None:
        subsets = {subset.name for subset in self._clause.subsets}
        seen: set[str] = set()
        for one in self._clause.definitions:
            name = quoted(one.name)
            if one.name in subsets:
                hint = "define the variables of the subset"
                raise Refused(f"the subset {name} cannot have a condition", hint=hint, location=one.at)
            if one.name not in variables.numbers:
                known = [known for known in variables.numbers if known not in subsets]
                hint = closest(one.name, known) or f"the variables of the pattern are {', '.join(map(quoted, known))}"
                raise UnknownName(f"DEFINE names {name}, which the pattern does not have", hint=hint, location=one.at)
            if one.name in seen:
                hint = "join the conditions with AND"
                raise Refused(f"{name} is defined twice", hint=hint, location=one.at)
            seen.add(one.name)

    def _definitions(
        self, tree: PatternTree, variables: Variables, shifts: dict[Shift, None]
    ) -> tuple[Definition, ...]:
        written = {one.name: one for one in self._clause.definitions}
        found = []
        for number, name in enumerate(tree.names):
            rendered = name.removesuffix(EXCLUDED)
            one = written.get(rendered)
            if one is None:
                found.append(Definition(name))
                continue
            scope = PatternScope(self._rows, self._types, variables, rendered)
            typed = check(one.condition, scope, to=BOOLEAN)
            shifts.update(scope.shifts)
            found.append(Definition(name, self._condition(typed, scope, number, tree, shifts)))
        return tuple(found)

    def _condition(
        self, typed: Typed, scope: PatternScope, number: int, tree: PatternTree, shifts: dict[Shift, None]
    ) -> Function:
        """A condition on the current row is an expression over columns; others see the match so far."""
        types = self._row_types(shifts)
        if not scope.leaves:
            return row_condition(typed, types)
        condition = Condition(typed, tuple(scope.leaves), number, _rendered(tree), types)
        return Function(condition, 2, name=str(typed))

    def _row_types(self, shifts: Mapping[Shift, None]) -> dict[str, pa.DataType]:
        types = {name: field.type for name, field in self._fields.items()}
        return {**types, **{shift.name: types[shift.field] for shift in shifts}}

    def _constant(self, tree: PatternTree, definitions: tuple[Definition, ...]) -> tuple[set[str], set[str]]:
        """Return the variables that no row satisfies, and those that every row satisfies."""
        never: set[str] = set()
        always: set[str] = set()
        for rendered, one in zip(_rendered(tree), definitions, strict=True):
            constant = True if one.condition is None else constant_of(one.condition)
            if constant is not None:
                (always if constant else never).add(rendered)
        return never, always

    def _after(self, tree: PatternTree, variables: Variables) -> AfterMatch:
        after = self._clause.after
        if after is None or after.where == "PAST LAST ROW":
            return AfterMatch(SkipTo.PAST_LAST)
        if after.where == "TO NEXT ROW":
            return AfterMatch(SkipTo.NEXT)
        numbers = variables.of(after.variable, after) or ()
        skip = SkipTo.FIRST if after.where == "TO FIRST" else SkipTo.LAST
        return AfterMatch(skip, after.variable, tuple(tree.names[number] for number in sorted(numbers)))

    def _output(
        self, tree: PatternTree, variables: Variables, partition: tuple[Field, ...], shifts: dict[Shift, None]
    ) -> tuple[Measures, bool, tuple[Field, ...]]:
        clause = self._clause
        scope = PatternScope(self._rows, self._types, variables)
        measures: list[tuple[str, Typed]] = []
        for one in clause.measures:
            typed = check(one.expression, scope)
            if typed.type == NULL:
                hint = f"write its type: CAST(NULL AS VARCHAR) AS {quoted(one.name)}"
                raise Refused(f"the measure {quoted(one.name)} has no type", hint=hint, location=one.at)
            if one.name in PSEUDO:
                hint = f"give it another: {show(one.expression)} AS something_else"
                raise Refused(f"{one.name} is a reserved name", hint=hint, location=one.at)
            measures.append((one.name, typed))
        shifts.update(scope.shifts)
        copied = self._copied(partition) if clause.rows is not ast.RowsPerMatch.ONE else []
        self._check_names([*(field.name for field in partition), *(field.name for field in copied)])
        excluded = frozenset(number for number, name in enumerate(tree.names) if name.endswith(EXCLUDED))
        output = Measures(
            clause.rows,
            tuple(scope.leaves),
            tuple(measures),
            tuple((field.name, field.type) for field in copied),
            _rendered(tree),
            excluded,
        )
        alias = self._relation.alias or self._relation.name
        ordered = {item.expression.name for item in clause.order_by if isinstance(item.expression, ast.Name)}
        fields = [Field(field.name, alias, field.type, is_key=True) for field in partition]
        fields += [Field(field.name, alias, field.type) for field in copied if field.name in ordered]
        fields += [Field(name, alias, typed.type) for name, typed in measures]
        fields += [Field(field.name, alias, field.type) for field in copied if field.name not in ordered]
        time = self._fields[ROWTIME]
        return output, scope.numbered, (*fields, Field(ROWTIME, alias, time.type, hidden=True))

    def _copied(self, partition: tuple[Field, ...]) -> list[Field]:
        keys = {field.name for field in partition}
        return [field for field in self._rows.fields if not field.hidden and field.name not in keys]

    def _check_names(self, columns: list[str]) -> None:
        seen = set(columns)
        for one in self._clause.measures:
            if one.name in seen:
                hint = "give the measure another name"
                raise Refused(f"the result has two columns {quoted(one.name)}", hint=hint, location=one.at)
            seen.add(one.name)

    def _read(
        self, definitions: tuple[Definition, ...], output: Measures, shifts: tuple[Shift, ...]
    ) -> tuple[Field, ...]:
        """Return the columns of rows: those of conditions, measures and neighbours, and with ALL ROWS all others."""
        used = {shift.field for shift in shifts} | {name for name, _ in output.columns}
        for _, leaf in output.leaves:
            used |= _leaf_columns(leaf)
        for definition in definitions:
            function = definition.condition
            if function is None:
                continue
            if isinstance(function.callable, Condition):
                used |= columns_of(function.callable.expression)
                for _, leaf in function.callable.leaves:
                    used |= _leaf_columns(leaf)
            elif function.expr is not None:
                used |= {part.path[0] for part in function.expr.children if isinstance(part, Column)}
        return tuple(field for field in self._rows.fields if field.name in used)


def row_condition(typed: Typed, types: Mapping[str, pa.DataType]) -> Function:
    """Return a condition on the current row as an expression over its fields."""
    slots = tuple(sorted(columns_of(typed)))
    args = tuple(Column(types[slot], "value", (slot,)) for slot in slots)
    return function_for(Computed(typed.type, args, SqlComputation(typed, slots), str(typed)), ("value",))


def constant_of(condition: Function) -> bool | None:
    """Return the value of a condition for every row, if it is constant."""
    expr = condition.expr
    if not (isinstance(expr, Computed) and isinstance(expr.compute, SqlComputation)):
        return None
    found, context = expr.compute.expression, Context()
    if any(isinstance(part, ColumnRef | nodes.FunctionCall | nodes.Parameter) for part in walk(found)):
        return None
    value = compute(found, {}, 1, context)[0].as_py()
    return None if context.failures else value is True


def _leaf_columns(leaf: Leaf) -> set[str]:
    if isinstance(leaf, Pick):
        return set(columns_of(leaf.expression))
    if isinstance(leaf, Aggregate):
        return {column for argument in leaf.arguments for column in columns_of(argument)}
    return set()


def _rendered(tree: PatternTree) -> tuple[str, ...]:
    return tuple(name.removesuffix(EXCLUDED) for name in tree.names)


def _nulls_first(item: ast.OrderItem) -> bool:
    return item.descending if item.nulls_first is None else item.nulls_first
