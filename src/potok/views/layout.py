"""How the cells of a table are read, as plain data: no user code is needed to look at a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.kernels.aggregates import Cells
from potok.kernels.folders import shown_by
from potok.records.schema import Schema
from potok.state.codec import load_state
from potok.topology.aggregations import AggregatePlan, Slot
from potok.topology.graph import Topology
from potok.topology.infer import Inferred
from potok.topology.nodes import Aggregate, Node, ToTable, Window

DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """`form` is `columns` for cells of numbers, else the kind of object that a cell holds."""

    table: str
    key: str
    window_ms: int
    advance_ms: int
    form: str
    kind: str
    slots: tuple[tuple[str, str, float | None], ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def key_type(self) -> pa.DataType | None:
        if self.key == DYNAMIC:
            return None
        schema = Schema.of(self.key)
        assert schema is not None
        return schema.arrow

    def reader(self) -> CellReader:
        return ColumnReader(self) if self.form == "columns" else ObjectReader(self)


class CellReader:
    """Turns the bytes of a cell into what the table shows."""

    def value(self, data: bytes) -> Any:
        return self.values([data])[0]

    def values(self, cells: list[bytes]) -> list[Any]:
        return [self.value(data) for data in cells]


class ColumnReader(CellReader):
    """Cells of fixed width, read as one array."""

    def __init__(self, layout: TableLayout) -> None:
        types = {"int64": pa.int64(), "double": pa.float64()}
        slots = tuple(Slot(op, None, types[type_], initial) for op, type_, initial in layout.slots)
        fields = [pa.field(name, slot.type) for name, slot in zip(layout.fields, slots, strict=False)]
        result = pa.struct(fields) if fields else slots[0].type
        self._cells = Cells(AggregatePlan(layout.kind, slots, layout.fields, None, result))

    def values(self, cells: list[bytes]) -> list[Any]:
        array = np.frombuffer(b"".join(cells), self._cells.dtype)
        result: list[Any] = self._cells.result(array, np.ones(len(array), np.bool_)).to_pylist()
        return result


class ObjectReader(CellReader):
    """Cells that hold Python data beside their time."""

    def __init__(self, layout: TableLayout) -> None:
        self._shown = shown_by(layout.kind)

    def value(self, data: bytes) -> Any:
        return self._shown(load_state(data)[1])


def layouts_of(topology: Topology, inferred: Inferred) -> bytes:
    """The layouts of all tables of a topology, to be kept beside its ledger."""
    layouts = [_layout(node, inferred) for node in topology.tables]
    return json.dumps({layout.table: _to_json(layout) for layout in layouts}).encode()


def load_layouts(data: bytes) -> dict[str, TableLayout]:
    return {
        table: TableLayout(
            table,
            found["key"],
            found["window_ms"],
            found["advance_ms"],
            found["form"],
            found["kind"],
            tuple(tuple(slot) for slot in found["slots"]),
            tuple(found["fields"]),
        )
        for table, found in json.loads(data).items()
    }


def _to_json(layout: TableLayout) -> dict[str, Any]:
    return {
        name: getattr(layout, name) for name in ("key", "window_ms", "advance_ms", "form", "kind", "slots", "fields")
    }


def _layout(node: Node, inferred: Inferred) -> TableLayout:
    if isinstance(node, Aggregate):
        key = inferred[node.upstream].key
        plan = inferred[node].plan
        assert plan is not None
        times = window_times(node.window)
        if plan.native:
            slots = tuple((slot.op, str(slot.type), slot.initial) for slot in plan.slots)
            return TableLayout(node.name, _text(key), *times, "columns", plan.kind, slots, plan.fields)
        return TableLayout(node.name, _text(key), *times, "objects", plan.kind)
    step = inferred[node]
    by_time = isinstance(node, ToTable) and inferred[node.upstream].rekeyed
    kind = "by_time" if by_time else "value"
    if step.window is None:
        return TableLayout(node.name, _text(step.key), 0, 0, "objects", kind)
    inner = None if step.key is None else step.key.field(0).type
    return TableLayout(node.name, _text(inner), *window_times(step.window), "objects", kind)


def window_times(window: Window | None) -> tuple[int, int]:
    """The length of a table's windows, and how far apart they begin."""
    if window is None:
        return 0, 0
    return window.size_ms, getattr(window, "advance_ms", 0)


def _text(type_: pa.DataType | None) -> str:
    if type_ is None:
        return DYNAMIC
    schema = Schema.of(type_)
    assert schema is not None
    return schema.ddl()
