"""Split the result of a SELECT into key and value columns of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.sql.analysis.form import Form
from potok.sql.analysis.grouping import grouped_rows
from potok.sql.analysis.items import Item, with_types
from potok.sql.analysis.scope import WINDOW_BOUNDS, Rows
from potok.sql.analysis.select import Analysis, PartitionPart
from potok.sql.catalog import SourceColumn
from potok.sql.errors import Refused
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.types import quoted

Columns = tuple[tuple[str, Typed], ...]


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of records. `repartitioned` says that the key changes or is removed."""

    keys: Columns
    values: Columns
    repartitioned: bool = False

    @property
    def columns(self) -> tuple[SourceColumn, ...]:
        keys = [SourceColumn(name, typed.type, is_key=True) for name, typed in self.keys]
        return (*keys, *(SourceColumn(name, typed.type) for name, typed in self.values))


def project(analysis: Analysis) -> Projection:
    """Return the columns of records. Raises `SqlError` if the result of a query cannot be written as records."""
    checked = with_types(list(zip(analysis.items, analysis.projected, strict=True)))
    rows = analysis.rows if analysis.grouping is None else grouped_rows(analysis.grouping, analysis.shape)
    found = _partitioned(analysis, checked) if analysis.partition_by else _under_own_key(analysis, rows, checked)
    if not found.values:
        hint = "select a column other than the key, or copy the key: AS_VALUE(key)"
        raise Refused("the result has no columns other than its key", hint=hint, location=analysis.query.at)
    return found


def _under_own_key(analysis: Analysis, rows: Rows, checked: Sequence[tuple[Item, Typed]]) -> Projection:
    """Return the columns of rows that keep their key."""
    keys: list[tuple[str, Typed]] = []
    values: list[tuple[str, Typed]] = []
    wanted = _key_slots(rows, checked)
    taken: set[str] = set()
    for item, typed in checked:
        slot = typed.column if isinstance(typed, ColumnRef) else ""
        if slot not in wanted:
            values.append((item.name, typed))
            continue
        if slot in taken:
            hint = f"copy it into the value: AS_VALUE({show(item.expression)})"
            raise Refused(f"the key {show(item.expression)} is selected twice", hint=hint, location=item.expression.at)
        taken.add(slot)
        keys.append((item.name, typed))
    if analysis.form is Form.PERSISTENT:
        _check_keys(analysis, rows, wanted, taken)
    return Projection(_in_key_order(rows, keys), tuple(values))


def _key_slots(rows: Rows, checked: Sequence[tuple[Item, Typed]]) -> list[str]:
    """Return the key columns. Of the columns that equal the key of a join, the first one selected is the key."""
    if rows.stand_ins:
        found = {typed.column for _, typed in checked if isinstance(typed, ColumnRef)}
        return [slot for slot in rows.stand_ins if slot in found][:1]
    return [
        field.slot for field in rows.fields if field.is_key and field.name.removeprefix("window.") not in WINDOW_BOUNDS
    ]


def _check_keys(analysis: Analysis, rows: Rows, wanted: Sequence[str], taken: set[str]) -> None:
    if wanted and taken.issuperset(wanted):
        return
    if rows.stand_ins:
        slots = {field.slot: f"{field.source}.{quoted(field.name)}" for field in rows.fields}
        rendered = " or ".join(slots[slot] for slot in rows.stand_ins)
        hint = f"add {slots[rows.stand_ins[0]]} to the SELECT: it is the key of the result"
        raise Refused(f"the key of the join, {rendered}, is missing", hint=hint, location=analysis.query.at)
    missing = next((field for field in rows.fields if field.slot in wanted and field.slot not in taken), None)
    if missing is not None:
        rendered = quoted(missing.name.removeprefix("group."))
        hint = f"add {rendered} to the SELECT: it is the key of the result"
        raise Refused(f"the key column {rendered} is missing", hint=hint, location=analysis.query.at)


def _in_key_order(rows: Rows, keys: Sequence[tuple[str, Typed]]) -> Columns:
    if len(keys) < 2:
        return tuple(keys)
    order = [field.slot for field in rows.fields if field.is_key]

    def position(key: tuple[str, Typed]) -> int:
        assert isinstance(key[1], ColumnRef)
        return order.index(key[1].column)

    return tuple(sorted(keys, key=position))


def _partitioned(analysis: Analysis, checked: Sequence[tuple[Item, Typed]]) -> Projection:
    rows, parts = analysis.rows, analysis.partition_by
    if rows.is_table:
        hint = "make a stream of it, or group it: GROUP BY"
        raise Refused("a table cannot have another key", hint=hint, location=parts[0].expression.at)
    wanted = [part.typed for part in parts]
    twice = next((part.expression for at, part in enumerate(parts) if part.typed in wanted[:at]), None)
    if twice is not None:
        raise Refused(f"{show(twice)} occurs twice in PARTITION BY", hint="leave one of them out", location=twice.at)
    if rows.window is not None:
        if [typed.column for typed in wanted if isinstance(typed, ColumnRef)] == [f.slot for f in rows.keys]:
            return _under_own_key(analysis, rows, checked)
        hint = "leave PARTITION BY out: a windowed source keeps its key and its windows"
        raise Refused("a windowed source cannot get another key", hint=hint, location=parts[0].expression.at)
    rest = list(checked)
    if any(typed.type == pa.null() for typed in wanted):
        if len(wanted) > 1:
            hint = "leave NULL out, or write PARTITION BY NULL alone for records without a key"
            raise Refused("NULL cannot be one of several parts of a key", hint=hint, location=parts[0].expression.at)
        keys: list[tuple[str, Typed]] = []
    else:
        keys = [(_part_of_key(analysis, part, rest), part.typed) for part in parts]
    return Projection(tuple(keys), tuple((item.name, typed) for item, typed in rest), repartitioned=True)


def _part_of_key(analysis: Analysis, part: PartitionPart, rest: list[tuple[Item, Typed]]) -> str:
    """Return the name of the key column of an expression of PARTITION BY, and remove it from the value. `*` includes an
    expression that is not selected."""
    found = [pair for pair in rest if pair[1] == part.typed]
    if len(found) > 1:
        twice = found[1][0].expression
        hint = f"copy it into the value: AS_VALUE({show(twice)})"
        raise Refused(f"the key {show(part.expression)} is selected twice", hint=hint, location=twice.at)
    if found:
        rest.remove(found[0])
        return found[0][0].name
    everything = any(isinstance(item, ast.Everything) and not item.source for item in analysis.query.items)
    if analysis.form is Form.PERSISTENT and not everything:
        hint = f"add {show(part.expression)} to the SELECT: it is the key of the result"
        raise Refused(f"the key column {show(part.expression)} is missing", hint=hint, location=part.expression.at)
    return part.name
