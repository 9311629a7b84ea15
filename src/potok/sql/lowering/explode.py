"""Table functions: one row for each item of the lists that they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.computed import Computed
from potok.expressions.expr import Column
from potok.sql.errors import Refused
from potok.sql.expressions.check import check_table_function
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.functions.function import TableFunction
from potok.sql.functions.registry import function_named
from potok.sql.lowering.computing import expr_of, function_for
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.items import Item
from potok.sql.lowering.join_sides import packed_name
from potok.sql.lowering.scope import Field, Rows, RowScope
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import calls_of
from potok.topology.nodes import FlatMapValues


def table_calls(node: Any) -> list[ast.Call]:
    return [call for call in calls_of(node) if isinstance(function_named(call.name), TableFunction)]


@dataclass(frozen=True, slots=True)
class Zipped:
    """Lists of rows: the columns of a record beside the items of its lists. The longest list tells how many rows there
    are; a shorter one is filled up with NULL."""

    width: int
    lists: tuple[Computed, ...]
    args: tuple[Column, ...]
    type: pa.DataType

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        by_place = dict(zip(self.args, columns, strict=True))
        lists = [made.compute([by_place[arg] for arg in made.args], rows) for made in self.lists]
        lengths = [np.asarray(pc.fill_null(pc.list_value_length(part), 0).to_numpy(), np.int64) for part in lists]
        counts = np.maximum.reduce(lengths)
        parents = np.repeat(np.arange(rows), counts)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(len(parents)) - offsets[parents]
        arrays = [column.take(pa.array(parents)) for column in columns[: self.width]]
        for part, length in zip(lists, lengths, strict=True):
            starts = np.concatenate([[0], np.cumsum(length)])[:-1]
            arrays.append(
                pc.list_flatten(part).take(pa.array(starts[parents] + places, mask=places >= length[parents]))
            )
        struct = pa.StructArray.from_arrays(arrays, fields=list(self.type.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=self.type)


def explode(
    graph: Graph, rows: Rows, items: Sequence[Item], types: Mapping[str, pa.DataType]
) -> tuple[Rows, dict[ast.Call, Typed]]:
    """Rows with a column for each table function of the items; those without one are as they were."""
    calls = list(dict.fromkeys(call for item in items for call in table_calls(item.expression)))
    if not calls:
        return rows, {}
    if rows.is_table:
        hint = "table functions make rows of the records of a stream"
        raise Refused(f"{show(calls[0])} cannot be taken over a table", hint=hint, place=calls[0].at)
    scope = RowScope(rows, types)
    lists = [expr_of(_list_of(call, scope), rows) for call in calls]
    made = tuple(expr for expr in lists if isinstance(expr, Computed))
    kept = [field for field in rows.fields if field.at.name == "value"]
    fields = [pa.field(packed_name(field), field.type) for field in kept]
    fields += [pa.field(f"EXPLODED_{index}", expr.type.value_type) for index, expr in enumerate(made)]
    type_ = pa.list_(pa.struct(fields))
    columns = [field.at for field in kept]
    args = (*columns, *dict.fromkeys(a for expr in made for a in expr.args if a not in columns))
    expr = Computed(type_, args, Zipped(len(columns), made, args, type_), ", ".join(map(show, calls)))
    node = graph.add(FlatMapValues(graph.name_of(rows.node, "explode"), None, rows.node, function_for(expr)))
    moved = {f.slot: replace(f, at=Column(f.type, "value", (packed_name(f),))) for f in kept}
    extra = [Field(f.name, "", f.type, Column(f.type, "value", (f.name,)), hidden=True) for f in fields[len(kept) :]]
    after = replace(rows, node=node, fields=(*(moved.get(f.slot, f) for f in rows.fields), *extra))
    refs = {call: ColumnRef(f.type, f.slot, shown=show(call)) for call, f in zip(calls, extra, strict=True)}
    return after, dict(refs)


def _list_of(call: ast.Call, scope: RowScope) -> Typed:
    """The list that a table function computes, as if it were a function of single values."""
    inside = next((inner for a in call.arguments for inner in table_calls(a)), None)
    if inside is not None:
        hint = "write it in a query of its own first: CREATE STREAM ... AS SELECT"
        raise Refused("a table function cannot stand in another one", hint=hint, place=inside.at)
    return check_table_function(call, scope)
