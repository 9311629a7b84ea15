"""The scope of DEFINE and MEASURES: names are columns of rows that variables have taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from potok.sql.analysis.grouping import aggregated, is_aggregate
from potok.sql.analysis.scope import Rows, resolve
from potok.sql.errors import Refused, SqlTypeError, UnknownName, closest
from potok.sql.expressions import nodes
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import ColumnRef, Typed, columns_of
from potok.sql.row_patterns.leaves import CLASSIFIER, Aggregate, Leaf, MatchNumber, Pick
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.walk import calls_of
from potok.sql.types import BIGINT, VARCHAR, quoted
from potok.topology.patterns.output import Shift

PHYSICAL = ("PREV", "NEXT")
LOGICAL = ("FIRST", "LAST")
SEMANTICS = ("RUNNING", "FINAL")
MOST_SHIFTED = 1_000


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a pattern and its subsets: the numbers that stand for each name."""

    numbers: Mapping[str, frozenset[int]]

    def of(self, name: str, at: ast.Node) -> frozenset[int] | None:
        """Return the numbers of a name; None for "", which is every variable."""
        if not name:
            return None
        found = self.numbers.get(name)
        if found is None:
            known = ", ".join(map(quoted, self.numbers))
            hint = closest(name, self.numbers) or f"the variables are {known}"
            raise UnknownName(f"the pattern has no variable {quoted(name)}", hint=hint, location=at.at)
        return found


@dataclass(slots=True)
class PatternScope:
    """Resolves names and calls to leaves, which it collects. `current` is the variable that is being defined; in
    MEASURES there is none."""

    rows: Rows
    custom_types: Mapping[str, pa.DataType]
    variables: Variables
    current: str = ""
    leaves: list[tuple[str, Leaf]] = field(default_factory=list)
    shifts: dict[Shift, None] = field(default_factory=dict)
    numbered: bool = False
    _known: dict[ast.Node, Typed] = field(default_factory=dict)

    def column(self, name: ast.Name) -> Typed:
        inner = _RowScope(self)
        found = inner.column(name)
        return self._pick(Pick(found.type, inner.variables(name), False, found), name)

    def call(self, call: ast.Call) -> Typed | None:
        if call in self._known:
            return self._known[call]
        found = self._call(call)
        if found is not None:
            self._known[call] = found
        return found

    def _call(self, call: ast.Call) -> Typed | None:
        if call.name in SEMANTICS:
            return self._with_semantics(call)
        if call.name in (*PHYSICAL, *LOGICAL):
            return self._pick(self._navigation(call, final=False), call)
        if call.name == "CLASSIFIER":
            return self._classifier(call)
        if call.name == "MATCH_NUMBER":
            return self._match_number(call)
        return self._add(self._aggregate(call, final=False), call) if is_aggregate(call) else None

    def _with_semantics(self, call: ast.Call) -> Typed:
        inner = call.arguments[0] if len(call.arguments) == 1 else None
        if not isinstance(inner, ast.Call) or not (inner.name in LOGICAL or is_aggregate(inner)):
            hint = f"write {call.name} FIRST(a.x), {call.name} LAST(a.x) or {call.name} before an aggregate"
            raise Refused(f"{call.name} must come before FIRST, LAST or an aggregate", hint=hint, location=call.at)
        final = call.name == "FINAL"
        if final and self.current:
            hint = "a condition sees the rows up to the current one: leave FINAL out"
            raise Refused("FINAL is not allowed in DEFINE", hint=hint, location=call.at)
        if inner.name in LOGICAL:
            return self._pick(self._navigation(inner, final=final), call)
        return self._add(self._aggregate(inner, final=final), call)

    def _navigation(self, call: ast.Call, *, final: bool) -> Pick:
        """PREV and NEXT move from the row that FIRST or LAST chooses, or from the last row of a variable."""
        expression, offset = self._offset(call)
        if call.name in LOGICAL:
            inner = _RowScope(self)
            found = check(expression, inner)
            return Pick(found.type, inner.variables(call), final, found, call.name == "FIRST", offset)
        semantics, target = "", expression
        if isinstance(target, ast.Call) and target.name in SEMANTICS and len(target.arguments) == 1:
            semantics, target = target.name, target.arguments[0]
        by = -offset if call.name == "PREV" else offset
        if isinstance(target, ast.Call) and target.name in LOGICAL:
            if semantics == "FINAL" and self.current:
                return self._refuse_final(call)
            argument, steps = self._offset(target)
            shifted = _RowScope(self, by)
            found = check(argument, shifted)
            return Pick(found.type, shifted.variables(call), semantics == "FINAL", found, target.name == "FIRST", steps)
        shifted = _RowScope(self, by)
        found = check(expression, shifted)
        return Pick(found.type, shifted.variables(call), final, found)

    def _refuse_final(self, call: ast.Call) -> Pick:
        hint = "a condition sees the rows up to the current one: leave FINAL out"
        raise Refused("FINAL is not allowed in DEFINE", hint=hint, location=call.at)

    def _offset(self, call: ast.Call) -> tuple[ast.Expression, int]:
        default = 1 if call.name in PHYSICAL else 0
        if not 1 <= len(call.arguments) <= 2:
            hint = f"write {call.name}(a.x) or {call.name}(a.x, 2)"
            raise SqlTypeError(f"{call.name} takes one or two arguments", hint=hint, location=call.at)
        if len(call.arguments) == 1:
            return call.arguments[0], default
        second = call.arguments[1]
        if not isinstance(second, ast.Literal) or type(second.value) is not int or not second.value >= 0:
            hint = "a number of rows is known before the query starts"
            raise Refused(f"the second argument of {call.name} must be a whole number", hint=hint, location=second.at)
        if second.value > MOST_SHIFTED:
            hint = "this many rows would be kept for every partition"
            raise Refused(f"{call.name} reaches at most {MOST_SHIFTED:,} rows", hint=hint, location=second.at)
        return call.arguments[0], second.value

    def _classifier(self, call: ast.Call) -> Typed:
        names = call.arguments
        if len(names) > 1 or not all(isinstance(name, ast.Name) and not name.source for name in names):
            hint = "write CLASSIFIER(), or CLASSIFIER(s) for the variables of a subset"
            raise Refused("CLASSIFIER takes a subset or nothing", hint=hint, location=call.at)
        chosen = names[0].name if names and isinstance(names[0], ast.Name) else ""
        pick = Pick(VARCHAR, self.variables.of(chosen, call), False, ColumnRef(VARCHAR, CLASSIFIER))
        return self._pick(pick, call)

    def _match_number(self, call: ast.Call) -> Typed:
        if call.arguments:
            raise SqlTypeError("MATCH_NUMBER takes no arguments", hint="write MATCH_NUMBER()", location=call.at)
        if self.current:
            hint = "use it in MEASURES: a match has a number once those before it are complete"
            raise Refused("MATCH_NUMBER is not allowed in DEFINE", hint=hint, location=call.at)
        self.numbered = True
        return self._add(MatchNumber(BIGINT, None, False), call)

    def _aggregate(self, call: ast.Call, *, final: bool) -> Aggregate:
        star = next((part for part in call.arguments if isinstance(part, ast.AnyRow)), None)
        inner = _RowScope(self)
        if star is not None:
            inner.seen[star.source] = star
        if any(nested.name in (*PHYSICAL, *LOGICAL) for part in call.arguments for nested in calls_of(part)):
            hint = "aggregate a column; PREV, NEXT, FIRST and LAST choose a single row"
            raise Refused(f"{call.name} cannot contain PREV, NEXT, FIRST or LAST", hint=hint, location=call.at)
        bare = call if star is None else replace(call, arguments=(ast.AnyRow(at=star.at),))
        found = aggregated(bare, inner, "")
        return Aggregate(found.how.result, inner.variables(call), final, found.arguments, found.how.fold, show(call))

    def _pick(self, pick: Pick, node: ast.Node) -> Typed:
        """The last row of the variable that is being defined is the current one."""
        if self.current and not pick.from_first and not pick.offset and self._is_current(pick.variables):
            if pick.expression == ColumnRef(VARCHAR, CLASSIFIER):
                return nodes.text(self.current)
            if CLASSIFIER not in columns_of(pick.expression):
                return pick.expression
        return self._add(pick, node)

    def _is_current(self, variables: frozenset[int] | None) -> bool:
        return variables is None or not self.variables.numbers[self.current].isdisjoint(variables)

    def _add(self, leaf: Leaf, node: ast.Node) -> Typed:
        if node in self._known:
            return self._known[node]
        slot = f"leaf.{len(self.leaves)}"
        self.leaves.append((slot, leaf))
        found = ColumnRef(leaf.type, slot, display=show(node))  # type: ignore[arg-type]
        self._known[node] = found
        return found


@dataclass(slots=True)
class _RowScope:
    """The scope of expressions over a single row: all names have the same variable. With `by`, columns are those of a
    row before or behind it."""

    outer: PatternScope
    by: int = 0
    seen: dict[str, ast.Node] = field(default_factory=dict)

    @property
    def custom_types(self) -> Mapping[str, pa.DataType]:
        return self.outer.custom_types

    def column(self, name: ast.Name) -> ColumnRef:
        self.seen.setdefault(name.source, name)
        self.outer.variables.of(name.source, name)
        found = resolve(self.outer.rows, replace(name, source=""))
        if not self.by:
            return ColumnRef(found.type, found.name, display=quoted(found.name))
        shift = Shift(found.name, self.by)
        self.outer.shifts[shift] = None
        return ColumnRef(found.type, shift.name, display=shift.name)

    def call(self, call: ast.Call) -> Typed | None:
        if call.name == "CLASSIFIER" and not call.arguments:
            if self.by:
                hint = "the variable is defined for rows of the match: LAST(CLASSIFIER(), 1)"
                raise Refused("PREV and NEXT cannot contain CLASSIFIER", hint=hint, location=call.at)
            return ColumnRef(VARCHAR, CLASSIFIER, display="CLASSIFIER()")
        if call.name in (*PHYSICAL, *LOGICAL, *SEMANTICS, "MATCH_NUMBER"):
            hint = "PREV and NEXT may contain FIRST or LAST, and nothing else of this kind"
            raise Refused(f"{call.name} is not allowed here", hint=hint, location=call.at)
        return None

    def variables(self, node: ast.Node) -> frozenset[int] | None:
        """Return the numbers of the only variable that the expression names."""
        if len(self.seen) > 1:
            names = " and ".join(quoted(name) if name else "no variable" for name in self.seen)
            hint = "write the same variable before every column"
            raise Refused(f"one row cannot belong to {names}", hint=hint, location=node.at)
        ((source, at),) = self.seen.items() or (("", node),)
        return self.outer.variables.of(source, at)
