"""The value of one cell: to make columns of a single row takes many times as long as to read it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from potok.kernels.folders import shown_by
from potok.state.codec import load_state
from potok.state.misfit import MISFIT, CellDoesNotFit
from potok.views.layout import TableLayout

OneValue = Callable[[bytes], Any]
"""Makes of a cell what the table shows; None where a row is remembered as deleted."""


def one_value(layout: TableLayout) -> OneValue | None:
    """How a cell of a table is read by itself; None for cells of numbers that stand for something else than each."""
    if layout.form != "columns":
        shown = shown_by(layout.kind)
        return _named(layout.table, lambda data: shown(load_state(data)[1]))
    return _named(layout.table, _numbers(layout)) if layout.fields and layout.kind != "avg" else None


def _named(table: str, read: OneValue) -> OneValue:
    """Wrap a reader so that its errors name the table."""

    def value(data: bytes) -> Any:
        try:
            return read(data)
        except MISFIT as error:
            raise CellDoesNotFit(table, error) from error

    return value


def _numbers(layout: TableLayout) -> OneValue:
    """Cells of fixed width, as `Cells` in `kernels/aggregates.py` lays them out: time, which slots have a value, and
    the slots."""
    slots = layout.plan.slots
    unpack = struct.Struct("<qQ" + "".join("d" if slot.type == pa.float64() else "q" for slot in slots)).unpack
    always = [slot.op == "count" or slot.initial is not None for slot in slots]
    parts = [
        (name, 0 if there else 1 << index)
        for index, (name, there) in enumerate(zip(layout.fields, always, strict=True))
    ]

    def value(data: bytes) -> dict[str, Any]:
        _, valid, *numbers = unpack(data)
        pairs = zip(parts, numbers, strict=True)
        return {name: number if not bit or valid & bit else None for (name, bit), number in pairs}

    return value
