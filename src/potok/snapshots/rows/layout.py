"""How to decode the cells of a table, as plain data: reading a table needs no user code."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.checksum import crc32
from potok.operators.cells.cell_codec import CellCodec, FixedCells, ObjectCells
from potok.operators.patterns.partials import PartialCells, partials_of
from potok.operators.patterns.runs import runs_of, segments_of
from potok.operators.windows.windows import WindowKeys
from potok.records.schemas.declared_schema import declared_schema
from potok.snapshots.rows.windows import LiveWindows, OpenReader, window_kind
from potok.state.entry import decoding
from potok.topology.aggregations import AggregatePlan, Slot
from potok.topology.graph import Topology
from potok.topology.inference.infer import Inferred
from potok.topology.nodes import AgentTable, Aggregate, Match, Node, TableSource, ToTable, Window

DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """`form` is `columns` for cells of numbers, `partials` for the open matches of a pattern, else the kind of object
    that a cell holds. `cells` is the table of the cells, if it has another name.

    `window` is the kind of windows; `open` says that windows which may still change have cells of their own;
    `by_start` that windows are ordered by their start, and that those before the horizon are closed. `held_ms` is how
    far earlier steps hold back its watermark. `one_shard` says that all rows are on the first shard, whatever their
    keys.
    """

    table: str
    key: str
    window_ms: int
    advance_ms: int
    form: str
    kind: str
    slots: tuple[tuple[str, str, float | None], ...] = ()
    fields: tuple[str, ...] = ()
    window: str = ""
    open: bool = False
    history_ms: int = 0
    by_start: bool = False
    held_ms: int = 0
    one_shard: bool = False
    value: str = DYNAMIC
    """The declared type of the rows."""
    cells: str = ""

    @property
    def cell_table(self) -> str:
        return self.cells or self.table

    def shard_of(self, key: bytes, shards: int) -> int:
        """Return the shard of a canonical key."""
        return 0 if self.one_shard else crc32(key) % shards

    @property
    def key_type(self) -> pa.DataType | None:
        return _type(self.key)

    @property
    def value_type(self) -> pa.DataType | None:
        return _type(self.value)

    def codec(self) -> CellCodec:
        """The decoder of the cells."""
        if self.form == "partials":
            return PartialCells(self.fields)
        return FixedCells(self.plan) if self.form == "columns" else ObjectCells(self.kind)

    @property
    def segments(self) -> str | None:
        """The table of further cells of a row, which are decoded with the first one."""
        return segments_of(self.cell_table) if self.form == "partials" else None

    @property
    def hides_nulls(self) -> bool:
        """Whether a cell without a value only records a deleted key, to reject older records."""
        return self.kind in ("by_time", "value", "partials")

    @property
    def plan(self) -> AggregatePlan:
        """The plan for reading cells of numbers."""
        types = {"int64": pa.int64(), "double": pa.float64()}
        slots = tuple(Slot(op, None, types[type_], initial) for op, type_, initial in self.slots)
        fields = [pa.field(name, slot.type) for name, slot in zip(self.fields, slots, strict=False)]
        result = pa.struct(fields) if fields else slots[0].type
        return AggregatePlan(self.kind, slots, self.fields, None, result)

    @property
    def window_keys(self) -> WindowKeys:
        return WindowKeys(self.window, self.window_ms, self.by_start)

    def live_windows(self) -> LiveWindows | None:
        return LiveWindows(self.table, self.window_ms) if self.by_start else None

    def open_reader(self) -> OpenReader | None:
        if not self.open:
            return None
        return OpenReader(self.table, self.window_keys, self.plan if self.form == "columns" else None)


def layouts_of(topology: Topology, inferred: Inferred) -> bytes:
    """Return the layouts of all tables of a topology, which are stored next to its ledger."""
    layouts = [
        replace(_layout(node, inferred), held_ms=topology.held_back_ms(node), value=_text(inferred[node].value))
        for node in topology.tables
    ]
    layouts += [_partials(node, inferred) for node in topology.of_type(Match)]
    return json.dumps({layout.table: _to_json(layout) for layout in layouts}).encode()


def load_layouts(data: bytes) -> dict[str, TableLayout]:
    with decoding("the layout of the tables of a query"):
        return _layouts_in(json.loads(data))


def _layouts_in(data: dict[str, Any]) -> dict[str, TableLayout]:
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
            found.get("window", "fixed" if found["window_ms"] else ""),
            found.get("open", False),
            found.get("history_ms", 0),
            found.get("by_start", False),
            found.get("held_ms", 0),
            found.get("one_shard", False),
            found.get("value", DYNAMIC),
            found.get("cells", ""),
        )
        for table, found in data.items()
    }


def _to_json(layout: TableLayout) -> dict[str, Any]:
    names = ("key", "window_ms", "advance_ms", "form", "kind", "slots", "fields", "window", "open", "history_ms")
    return {name: getattr(layout, name) for name in (*names, "by_start", "held_ms", "one_shard", "value", "cells")}


def _layout(node: Node, inferred: Inferred) -> TableLayout:
    if isinstance(node, Aggregate):
        key = inferred[node.upstream].key
        plan = inferred[node].plan
        assert plan is not None
        times, window = window_times(node.window), window_kind(node.window)
        slots = tuple((slot.op, str(slot.type), slot.initial) for slot in plan.slots)
        form, fields = ("columns", plan.fields) if plan.native else ("objects", ())
        return TableLayout(
            node.name,
            _text(key),
            *times,
            form,
            plan.kind,
            slots,
            fields,
            window=window,
            open=window in ("session", "sliding"),
            by_start=window == "fixed",
        )
    step = inferred[node]
    history_ms = (node.lifetime.history_ms or 0) if isinstance(node, TableSource | ToTable) else 0
    by_time = bool(history_ms) or (isinstance(node, ToTable) and inferred[node.upstream].rekeyed)
    kind = "by_time" if by_time else "value"
    one = isinstance(node, AgentTable) and node.one_shard
    if step.window is None:
        return TableLayout(node.name, _text(step.key), 0, 0, "objects", kind, history_ms=history_ms, one_shard=one)
    inner = None if step.key is None else step.key.field(0).type
    times, window = window_times(step.window), window_kind(step.window)
    return TableLayout(node.name, _text(inner), *times, "objects", kind, window=window, one_shard=one)


def _partials(node: Match, inferred: Inferred) -> TableLayout:
    """Return the layout of the partial matches of a pattern, whose cells are those of the step itself."""
    rendered = frozenset(node.variables)
    fields = tuple(name if name in rendered else "" for name in (one.name for one in node.pattern.definitions))
    key, name = _text(inferred[node].key), partials_of(node.name)
    return TableLayout(name, key, 0, 0, "partials", "partials", fields=fields, cells=runs_of(node.name))


def window_times(window: Window | None) -> tuple[int, int]:
    """Return the length of a table's windows, and the interval between their starts."""
    if window is None:
        return 0, 0
    return window.size_ms, getattr(window, "advance_ms", 0)


def _type(text: str) -> pa.DataType | None:
    if text == DYNAMIC:
        return None
    schema = declared_schema(text)
    assert schema is not None
    return schema.arrow


def _text(type_: pa.DataType | None) -> str:
    if type_ is None:
        return DYNAMIC
    schema = declared_schema(type_)
    assert schema is not None
    return schema.ddl()
