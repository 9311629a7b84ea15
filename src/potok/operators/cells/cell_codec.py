"""The rows of tables in cells: operators encode them, and readers of tables decode them."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.accumulators import result_of
from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.state.codec import dump_state, load_state, load_states
from potok.topology.aggregations import AggregatePlan, Slot

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class CellCodec(ABC):
    """Decode the cells of one table: many as columns, a single one without the cost of creating columns."""

    value: Callable[[bytes], Any]
    """Return what the table shows of one cell; None where a cell only remembers that its row was deleted."""

    @abstractmethod
    def decode(self, cells: Sequence[bytes]) -> tuple[list[int], pa.Array | list[Any]]:
        """Return the times and the values of many cells."""


def encode_row(time_ms: int, state: Any, *more: Any) -> bytes:
    """Encode a row that holds Python data: its time, its state, and what else its operator stores."""
    return dump_state((time_ms, state, *more))


def decode_row(data: bytes) -> Any:
    """Return what `encode_row` was given."""
    return load_state(data)


class ObjectCells(CellCodec):
    """Rows of `encode_row`; `kind` says how the table shows their state."""

    def __init__(self, kind: str) -> None:
        self._result = result = result_of(kind)
        self.value = lambda data: result(decode_row(data)[1])

    def decode(self, cells: Sequence[bytes]) -> tuple[list[int], list[Any]]:
        rows = load_states(cells)
        return [row[0] for row in rows], [self._result(row[1]) for row in rows]


class FixedCells(CellCodec):
    """Rows of an aggregate, all of one width: time, which slots have a value, and the slots."""

    def __init__(self, plan: AggregatePlan) -> None:
        self._plan = plan
        is_float = [slot.type == pa.float64() for slot in plan.slots]
        slots = [(f"s{index}", "<f8" if floats else "<i8") for index, floats in enumerate(is_float)]
        self.dtype = np.dtype([("timestamp", "<i8"), ("valid", "<u8"), *slots])
        self._unpack = struct.Struct("<qQ" + "".join("d" if floats else "q" for floats in is_float)).unpack
        # The bit of `valid` that a slot needs to have a value; some always have one.
        bits = [0 if slot.op == "count" or slot.initial is not None else 1 << i for i, slot in enumerate(plan.slots)]
        self._bits, self._named_bits = bits, list(zip(plan.fields, bits, strict=False))
        self.value = self._mean if plan.kind == "avg" else self._struct if plan.fields else self._scalar

    def _struct(self, data: bytes) -> dict[str, Any]:
        _, valid, *numbers = self._unpack(data)
        pairs = zip(self._named_bits, numbers, strict=True)
        return {name: number if not bit or valid & bit else None for (name, bit), number in pairs}

    def _scalar(self, data: bytes) -> Any:
        _, valid, number, *_ = self._unpack(data)
        return number if not self._bits[0] or valid & self._bits[0] else None

    def _mean(self, data: bytes) -> float | None:
        _, valid, total, count = self._unpack(data)
        if not valid & 1:
            return None
        return float(total) / float(count) if count else math.nan

    def decode(self, cells: Sequence[bytes]) -> tuple[list[int], pa.Array]:
        if any(len(data) != self.dtype.itemsize for data in cells):
            raise ValueError(f"every value of the table has {self.dtype.itemsize} bytes")
        array = np.frombuffer(b"".join(cells), self.dtype)
        times: list[int] = array["timestamp"].tolist()
        return times, self.result(array, np.ones(len(array), np.bool_))

    def merge(self, old: Array, existed: Mask, partial: pa.Table, step: str | None) -> Array:
        new = np.zeros(len(old), self.dtype)
        times = partial.column("timestamp").to_numpy()
        new["timestamp"] = np.where(existed, np.maximum(old["timestamp"], times), times)
        for index, slot in enumerate(self._plan.slots):
            name, bit = f"s{index}", np.uint64(1 << index)
            column = partial.column(name).combine_chunks()
            has_new = ~column.is_null().to_numpy(zero_copy_only=False)
            values = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), new.dtype[name])
            had = existed & ((old["valid"] & bit) != 0)
            base = old[name]
            if slot.initial is not None:
                base, had = np.where(had, base, slot.initial), np.ones(len(old), np.bool_)
            new[name] = merge_slot(slot, base, had, values, has_new, step)
            new["valid"] |= np.where(had | has_new, bit, np.uint64(0))
        return new

    def result(self, cells: Array, exists: Mask) -> pa.Array:
        """Return the aggregates of cells as a column; null where there is none."""
        plan = self._plan
        columns = [self._slot(cells, index, exists) for index in range(len(plan.slots))]
        if plan.kind == "avg":
            total, count = (column.to_numpy(zero_copy_only=False) for column in columns)
            empty = ~exists | (cells["valid"] & np.uint64(1) == 0)
            with np.errstate(all="ignore"):
                mean = np.asarray(total, np.float64) / np.asarray(count, np.float64)
            return pa.array(mean, pa.float64(), mask=empty)
        if plan.fields:
            assert plan.result is not None
            # The fields of the result carry the class that its rows are declared with.
            return pa.StructArray.from_arrays(columns, fields=list(plan.result), mask=pa.array(~exists))
        return columns[0]

    def _slot(self, cells: Array, index: int, exists: Mask) -> pa.Array:
        absent = ~exists
        if bit := self._bits[index]:
            absent = absent | ((cells["valid"] & np.uint64(bit)) == 0)
        return pa.array(np.ascontiguousarray(cells[f"s{index}"]), self._plan.slots[index].type, mask=absent)


def merge_slot(slot: Slot, base: Array, had: Mask, values: Array, has_new: Mask, step: str | None) -> Array:
    """Return a slot of many cells after more values; `had` and `has_new` say which of both exist. Without a step, a
    sum may wrap around.
    """
    if slot.op in ("count", "sum"):
        left, right = np.where(had, base, 0), np.where(has_new, values, 0)
        if slot.type == pa.int64():
            total = left + right
            if step is not None and np.any(((left ^ total) & (right ^ total)) < 0):
                raise AggregateOverflow(step)
            return total
        return np.asarray(left + right)
    better = np.fmin if slot.op == "min" else np.fmax
    return np.where(had & has_new, better(base, values), np.where(had, base, values))
