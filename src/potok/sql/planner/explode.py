"""Plan table functions: one row per element of the lists that they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.computed import Computed
from potok.expressions.expr import Column
from potok.expressions.failures import RowFailures
from potok.sql.analysis.table_functions import exploded_slot
from potok.sql.expressions.typed import Typed
from potok.sql.planner.column_positions import LocatedRows
from potok.sql.planner.computing import expr_of, function_for
from potok.sql.planner.graph import Graph
from potok.sql.planner.joins import packed_name
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.topology.nodes import FlatMapValues


@dataclass(frozen=True, slots=True)
class Zipped:
    """Returns lists of rows: the columns of a record with the elements of its lists. Shorter lists are padded with
    NULL."""

    width: int
    lists: tuple[Computed, ...]
    args: tuple[Column, ...]
    type: pa.DataType

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        by_position = dict(zip(self.args, columns, strict=True))
        lists = [made.compute([by_position[arg] for arg in made.args], rows, failures) for made in self.lists]
        lengths = [np.asarray(pc.fill_null(pc.list_value_length(part), 0).to_numpy(), np.int64) for part in lists]
        counts = np.maximum.reduce(lengths)
        parents = np.repeat(np.arange(rows), counts)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        positions = np.arange(len(parents)) - offsets[parents]
        arrays = [column.take(pa.array(parents)) for column in columns[: self.width]]
        for part, length in zip(lists, lengths, strict=True):
            starts = np.concatenate([[0], np.cumsum(length)])[:-1]
            arrays.append(
                pc.list_flatten(part).take(pa.array(starts[parents] + positions, mask=positions >= length[parents]))
            )
        struct = pa.StructArray.from_arrays(arrays, fields=list(self.type.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=self.type)


def explode(graph: Graph, rows: LocatedRows, lists: Sequence[tuple[ast.Call, Typed]]) -> LocatedRows:
    """Return rows with a column per table function; without table functions, return them unchanged."""
    if not lists:
        return rows
    made = tuple(expr for expr in (expr_of(typed, rows) for _, typed in lists) if isinstance(expr, Computed))
    kept = {slot: at for slot, at in rows.at.items() if at.name == "value"}
    names = {field.slot: packed_name(field) for field in rows.fields}
    fields = [pa.field(names.get(slot, slot), at.type) for slot, at in kept.items()]
    fields += [pa.field(f"EXPLODED_{index}", expr.type.value_type) for index, expr in enumerate(made)]
    type_ = pa.list_(pa.struct(fields))
    columns = list(kept.values())
    args = (*columns, *dict.fromkeys(a for expr in made for a in expr.args if a not in columns))
    text = ", ".join(show(call) for call, _ in lists)
    expr = Computed(type_, args, Zipped(len(columns), made, args, type_), text)
    node = graph.add(FlatMapValues(graph.name_of(rows.node, "explode"), None, rows.node, function_for(expr)))
    slots = [*kept, *(exploded_slot(index) for index in range(len(made)))]
    positions = {slot: Column(field.type, "value", (field.name,)) for slot, field in zip(slots, fields, strict=True)}
    return LocatedRows(node, rows.rows, {**rows.at, **positions})
