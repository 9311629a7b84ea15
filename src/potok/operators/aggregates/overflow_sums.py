"""An aggregate whose sums overflowed: its records are shuffled one by one, so that those which overflow can be set
aside.

A batch runs in this way when the usual one has failed, because a partial result does not identify single records. The
cells are the same, and so is every result that fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.aggregates import Aggregate
from potok.operators.aggregates.pre_aggregate import PreAggregate, group_partials
from potok.operators.core.call import Errors
from potok.operators.core.chunk import Chunk, Ints
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import all_but
from potok.operators.exchange.shards import key_column
from potok.operators.windows.windows import spread, time_bytes
from potok.topology.nodes import Hopping

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_POSITION = ("input_partition", "offset")


class SendOneByOne(PreAggregate):
    """Each record as its own partial result, with its position."""

    def positions(self, chunk: Chunk) -> dict[str, pa.Array]:
        return {"input_partition": pa.array(chunk.input_partition), "offset": pa.array(chunk.offset)}

    def _group(self, table: pa.Table) -> pa.Table:
        for index, slot in enumerate(self._plan.slots):
            name = f"s{index}"
            if slot.expr is None:
                table = table.append_column(name, pa.array(np.ones(len(table), np.int64)))
            elif slot.op == "count":
                counts = table.column(name).is_valid().cast(pa.int64())
                table = table.set_column(table.column_names.index(name), name, counts)
        return table

    def _hold(self, partial: pa.Table) -> None:
        self._partials.append(partial)

    def _merged(self) -> pa.Table:
        return pa.concat_tables(self._partials)


class AggregateOneByOne(Aggregate):
    """Add the records of a cell in the order of their positions; one that makes a sum overflow is set aside."""

    # Intermediate sums may wrap around, and the final one is correct: records that would not fit were left out.
    checked = False

    def _merged(self) -> pa.Table:
        table = pa.concat_tables(self._partials)
        table = table.sort_by([(name, "ascending") for name in _POSITION])
        windows, origins = self._in_windows(table)
        errors = self._overflows(windows)
        if errors:
            self._set_aside(table, {int(origins[row]): text for row, text in errors.items()})
        left = windows.filter(pa.array(all_but(errors, len(windows))))
        return group_partials(left.drop_columns(list(_POSITION)), self._plan, None)

    def _in_windows(self, table: pa.Table) -> tuple[pa.Table, Ints]:
        """Return one row for each record and window, and the number of the record."""
        if not isinstance(self._window, Hopping):
            return table, np.arange(len(table))
        first, last = (table.column(name).to_numpy() for name in ("start", "last"))
        rows, starts = spread(first, last, self._window.advance_ms)
        wide = table.drop_columns(["last"]).take(pa.array(rows))
        return wide.set_column(wide.column_names.index("start"), "start", pa.array(starts)), rows

    def _overflows(self, table: pa.Table) -> Errors:
        """Return the rows whose sum, with all earlier ones of their cell, does not fit into 64 bits."""
        sums = [i for i, slot in enumerate(self._plan.slots) if slot.op == "sum" and slot.type == pa.int64()]
        cells = table.column("key").to_pylist()
        if self._window is not None:
            starts = time_bytes(table.column("start").to_numpy())
            cells = list(map(bytes.__add__, starts, cells))
        totals = self._totals(sorted(set(cells)), sums)
        columns = zip(*(table.column(f"s{i}").to_pylist() for i in sums), strict=True)
        errors: Errors = {}
        for row, (cell, values) in enumerate(zip(cells, columns, strict=True)):
            now = [total + (value or 0) for total, value in zip(totals[cell], values, strict=True)]
            if all(_LEAST <= total <= _MOST for total in now):
                totals[cell] = now
            else:
                errors[row] = _reason(totals[cell], values)
        return errors

    def _totals(self, cells: list[bytes], sums: list[int]) -> dict[bytes, list[int]]:
        """Return the sums of each cell before this batch."""
        old, existed = self._session.read_fixed(self._table, cells, self._cells.dtype)
        columns: list[list[int]] = []
        for i in sums:
            had = existed & ((old["valid"] & np.uint64(1 << i)) != 0)
            initial = self._plan.slots[i].initial or 0
            columns.append(np.where(had, old[f"s{i}"], int(initial)).tolist())
        return {cell: list(found) for cell, found in zip(cells, zip(*columns, strict=True), strict=True)}

    def _set_aside(self, table: pa.Table, errors: Errors) -> None:
        """Set aside each record once, even if it overflows in several windows."""
        names = [f"s{index}" for index in range(len(self._plan.slots))]
        values: list[Any] = table.select(names).to_pylist()
        times, stream_times, input_partitions, offsets = (
            table.column(name).to_numpy() for name in ("timestamp", "stream_time", *_POSITION)
        )
        keys = key_column(table.column("key").combine_chunks(), self._key_type)
        chunk = Chunk(keys, values, times, stream_times, input_partitions, offsets)
        self.task.dead_letters.add(chunk, errors, self.name, Reason.ERROR)


def _reason(totals: list[int], values: tuple[int | None, ...]) -> str:
    total, value = next(
        (total, value or 0)
        for total, value in zip(totals, values, strict=True)
        if not _LEAST <= total + (value or 0) <= _MOST
    )
    return f"AggregateOverflow: {total} + {value} does not fit into 64 bits; sum a float instead"
