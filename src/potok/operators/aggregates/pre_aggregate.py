"""The pre-shuffle operator of an aggregate: partial results per key and window, one row each.

Only these rows are sent to the shards.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import QueryError
from potok.expressions.evaluate import evaluate
from potok.expressions.failures import RowFailures, add_rows
from potok.expressions.row import evaluate_row
from potok.operators.core.call import Errors, describe_error, patch, python_rows, typed_columns
from potok.operators.core.chunk import Chunk, position_of, to_ipc
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.exchange.shards import split
from potok.operators.exchange.shuffle_writer import ShuffleWriter
from potok.operators.windows.windows import Spans, late_reason, spans_of
from potok.records.keys import encode_each_key, encode_keys
from potok.topology.aggregations import AggregatePlan, Slot
from potok.topology.nodes import FixedWindow, Hopping

HELD_ROWS = 1_000_000
_GROUPABLE = (pa.types.is_string, pa.types.is_binary, pa.types.is_integer, pa.types.is_boolean)


class AggregateOverflow(QueryError):
    """A sum of integers that does not fit into 64 bits."""

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(
            f'the sum of step "{step}" no longer fits into 64 bits',
            hint='sum a float instead: lambda v: v["amount"] * 1.0',
        )

    def __reduce__(self) -> tuple[object, ...]:
        return AggregateOverflow, (self.step,)


class GroupRecords(Operator):
    """The first step of all aggregates: records without a key and late records are set aside."""

    def __init__(self, name: str, task: Task, window: FixedWindow | None) -> None:
        super().__init__(name, task)
        self._window = window

    def admit(self, chunk: Chunk) -> tuple[Chunk, Spans | None]:
        """Return the records that belong to a group, and their windows."""
        chunk = self.keyed(chunk)
        if self._window is None:
            return chunk, None
        spans = spans_of(self._window, chunk)
        if spans.late.any():
            rows = np.flatnonzero(spans.late)
            errors = {int(row): late_reason(self._window, chunk, spans, int(row)) for row in rows}
            self.task.dead_letters.add(chunk, errors, self.name, Reason.LATE)
            counts = spans.open <= spans.last
            chunk, spans = chunk.where(counts), spans.where(counts)
        return chunk, spans

    def keyed(self, chunk: Chunk) -> Chunk:
        """Return the records that have a key, dynamic keys as canonical bytes."""
        if isinstance(chunk.key, list):
            chunk = self._canonical(chunk)
        assert not isinstance(chunk.key, list)
        missing = chunk.key.is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            errors = {int(row): "the record has no key to group by" for row in np.flatnonzero(missing)}
            self.task.dead_letters.add(chunk, errors, self.name, Reason.NO_KEY)
            chunk = chunk.where(~missing)
        return chunk

    def _canonical(self, chunk: Chunk) -> Chunk:
        """Convert dynamic keys to canonical bytes; values that cannot be keys are set aside."""
        encoded = encode_each_key(chunk.key)
        canonical = chunk.with_key(encoded.values)
        if not encoded.errors:
            return canonical
        self.set_aside(chunk, encoded.errors)
        return canonical.where(all_but(encoded.errors, len(chunk)))


class PreAggregate(GroupRecords):
    """Partial results of an aggregate whose slots merge."""

    def __init__(
        self,
        name: str,
        task: Task,
        plan: AggregatePlan,
        window: FixedWindow | None,
        shuffle_writer: ShuffleWriter,
        level: int,
        shards: int,
    ) -> None:
        super().__init__(name, task, window)
        self._plan, self._shuffle_writer, self._level, self._shards = plan, shuffle_writer, level, shards
        self._partials: list[pa.Table] = []
        self._held = 0

    def process(self, chunk: Chunk) -> None:
        chunk, spans = self.admit(chunk)
        if not len(chunk):
            return
        arrays: dict[str, Any] = {"key": _groupable(chunk)}
        if spans is not None:
            arrays["start"] = pa.array(spans.open)
            if isinstance(self._window, Hopping):
                arrays["last"] = pa.array(spans.last)
        errors: Errors = {}
        failures: RowFailures = {}
        for index, slot in enumerate(self._plan.slots):
            if slot.expr is not None:
                column, failed = _slot_values(slot, chunk, failures)
                arrays[f"s{index}"] = column
                errors.update(failed)
        if failures:
            self.task.failures.add(failures, lambda row: position_of(chunk, row))
        arrays["timestamp"], arrays["stream_time"] = pa.array(chunk.timestamp), pa.array(chunk.stream_time)
        table = pa.table(arrays | self.positions(chunk))
        if errors:
            self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)
            table = table.filter(pa.array(all_but(errors, len(chunk))))
        self._hold(self._group(table))

    def positions(self, chunk: Chunk) -> dict[str, pa.Array]:
        """Return the positions of records, if they are needed; a partial result covers many records."""
        return {}

    def _group(self, table: pa.Table) -> pa.Table:
        by = [name for name in ("key", "start", "last") if name in table.column_names]
        aggregates: list[Any] = [("timestamp", "max"), ("stream_time", "max")]
        names = ["timestamp", "stream_time"]
        for index, slot in enumerate(self._plan.slots):
            if slot.expr is None:
                aggregates.append(([], "count_all"))
            elif slot.op == "count":
                aggregates.append((f"s{index}", "count"))
            else:
                check_overflow(slot, table, f"s{index}", by, self.name)
                aggregates.append((f"s{index}", slot.op))
            names.append(f"s{index}")
        return table.group_by(by, use_threads=False).aggregate(aggregates).rename_columns([*by, *names])

    def _hold(self, partial: pa.Table) -> None:
        self._partials.append(partial)
        self._held += len(partial)
        if self._held > HELD_ROWS:
            self._partials = [merge_partials(self._partials, self._plan, self.name)]
            self._held = len(self._partials[0])

    def _merged(self) -> pa.Table:
        return merge_partials(self._partials, self._plan, self.name)

    def finish(self) -> None:
        if not self._partials:
            return
        table = self._merged()
        keys = encode_keys(table.column("key").combine_chunks())
        table = table.set_column(0, "key", keys)
        for shard, rows in split(keys, self._shards):
            part = table.take(pa.array(rows)).combine_chunks()
            self._shuffle_writer.send(self._level, shard, self.name, to_ipc(part.to_batches()[0]))
        self._partials = []


def _groupable(chunk: Chunk) -> pa.Array:
    """Return a key column that Arrow can group by: as it is, or as canonical bytes."""
    assert not isinstance(chunk.key, list)
    if any(test(chunk.key.type) for test in _GROUPABLE):
        return chunk.key
    return encode_keys(chunk.key)


def _slot_values(slot: Slot, chunk: Chunk, failures: RowFailures) -> tuple[pa.Array, Errors]:
    """Return the numbers that a slot takes from each record; rows where Arrow may differ are computed by Python."""
    assert slot.expr is not None
    term, columns = slot.term, typed_columns(chunk)
    result = evaluate(slot.expr, columns, len(chunk)) if term is None else term.evaluate(columns, len(chunk))
    for text, reasons in result.failures.items():
        add_rows(failures, text, reasons)
    if result.suspect is None:
        return result.column, {}
    rows = np.flatnonzero(result.suspect.to_numpy(zero_copy_only=False))
    if not len(rows):
        return result.column, {}
    part = chunk.take(rows)
    values: list[Any] = []
    errors: Errors = {}
    for row, key, value in zip(rows, python_rows(part.key), python_rows(part.value), strict=True):
        try:
            record = {"key": key, "value": value}
            values.append(evaluate_row(slot.expr, record) if term is None else term.contribution(record))
        except Exception as error:  # noqa: BLE001 - what the user's function would have raised
            errors[int(row)] = describe_error(error)
            values.append(None)
    column, misfits = patch(result.column, rows, values)
    return column, {**misfits, **errors}


def check_overflow(slot: Slot, table: pa.Table, name: str, by: list[str], step: str | None) -> None:
    """Raise if a sum overflows: Arrow's sums wrap around silently. Where one could, Python adds up each group;
    without a step it may wrap.
    """
    column = table.column(name)
    if step is None or slot.op != "sum" or not pa.types.is_integer(column.type) or not len(column):
        return
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
    if max(abs(low), abs(high)) * len(column) < 1 << 63:
        return
    sums: dict[tuple[Any, ...], int] = defaultdict(int)
    groups = zip(*(table.column(part).to_pylist() for part in by), strict=True)
    for group, value in zip(groups, column.to_pylist(), strict=True):
        sums[group] += value or 0
    if any(not -(1 << 63) <= total < 1 << 63 for total in sums.values()):
        raise AggregateOverflow(step)


MERGES = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def merge_partials(partials: list[pa.Table], plan: AggregatePlan, step: str) -> pa.Table:
    """Merge partial results of several chunks or tasks to one row per key and window, or per key and run of windows."""
    return partials[0] if len(partials) == 1 else group_partials(pa.concat_tables(partials), plan, step)


def group_partials(table: pa.Table, plan: AggregatePlan, step: str | None) -> pa.Table:
    by = [name for name in ("key", "start", "last") if name in table.column_names]
    names = ["timestamp", "stream_time", *(f"s{index}" for index in range(len(plan.slots)))]
    aggregates = [("timestamp", "max"), ("stream_time", "max")]
    for index, slot in enumerate(plan.slots):
        check_overflow(slot, table, f"s{index}", by, step)
        aggregates.append((f"s{index}", MERGES[slot.op]))
    return table.group_by(by, use_threads=False).aggregate(aggregates).rename_columns([*by, *names])
