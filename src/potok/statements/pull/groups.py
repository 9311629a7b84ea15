"""GROUP BY of pull queries: mergeable aggregates are computed on columns, all others row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import QueryError
from potok.records.rows import rows_of
from potok.sql.analysis.grouping import Aggregated, Grouping
from potok.sql.functions.function import Context, Part
from potok.statements.frames import Frame, typed_column
from potok.statements.pull.joins import NOTHING, codes_of

_HALF = 32
"""A 64-bit integer is summed as two halves, whose sums fit 64 bits for any possible number of rows."""

Ints = npt.NDArray[np.int64]


class SumOutgrown(QueryError):
    """A sum of integers overflows 64 bits."""

    def __init__(self) -> None:
        super().__init__("the sum overflows 64 bits", hint="sum a DOUBLE or a DECIMAL: SUM(CAST(x AS DOUBLE))")


def group_frame(frame: Frame, grouping: Grouping, context: Context) -> Frame:
    """Return a row per group, in the order in which groups first appear. A row whose key is NULL belongs to no group.

    Without keys, all rows form one group, which exists even if there are no rows.
    """
    keys = frame.computed([typed for _, typed in grouping.keys], context)
    if keys:
        codes = codes_of(keys)
        if (codes == NOTHING).any():
            there = np.flatnonzero(codes != NOTHING)
            frame, codes = frame.take(there), codes[there]
            keys = [key.take(pa.array(there)) for key in keys]
        firsts, ids = _numbered(codes)
    else:
        firsts, ids = np.zeros(1, np.int64), np.zeros(frame.rows, np.int64)
    columns = {f"group.{name}": key.take(pa.array(firsts)) for (name, _), key in zip(grouping.keys, keys, strict=True)}
    for item in grouping.aggregates:
        arguments = frame.computed(item.arguments, context)
        columns[f"aggregate.{item.name}"] = _aggregated(item, arguments, ids, len(firsts))
    return Frame(columns, len(firsts))


def _numbered(codes: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each group and the group number of each row, by first appearance."""
    firsts = np.zeros(int(codes.max(initial=NOTHING)) + 1, np.int64)
    # The last write per code wins; writing in reverse keeps the first row of the frame.
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    order = np.argsort(firsts)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[codes]


def _aggregated(item: Aggregated, arguments: list[pa.Array], ids: Ints, groups: int) -> pa.Array:
    how = item.how
    if not how.parts:
        return _folded(item, arguments, ids, groups)
    parts = [_part(part, arguments, ids, groups) for part in how.parts]
    if how.finish is not None:
        return how.finish(parts, groups, how.result)
    return parts[0].cast(how.result)


def _part(part: Part, arguments: list[pa.Array], ids: Ints, groups: int) -> pa.Array:
    if part.compute is None:
        return pa.array(np.bincount(ids, minlength=groups).astype(np.int64), part.type)
    values = part.compute(arguments, len(ids))
    found = pa.table({"id": ids, "value": values}).group_by("id").aggregate([("value", part.op)])
    merged = found.column(f"value_{part.op}").combine_chunks()
    if part.op == "sum" and pa.types.is_integer(values.type):
        _check_sum(values, ids)
    indexes = np.full(groups, NOTHING, np.int64)
    indexes[found.column("id").to_numpy()] = np.arange(len(merged))
    result = merged.take(pa.array(indexes, mask=indexes == NOTHING)).cast(part.type)
    initial = 0 if part.op == "count" and part.initial is None else part.initial
    return result if initial is None else pc.fill_null(result, pa.scalar(initial, part.type))


def _check_sum(values: pa.Array, ids: Ints) -> None:
    """Raise if a sum does not fit 64 bits, because Arrow's wraps around."""
    numbers = pc.drop_null(values)
    if not len(numbers):
        return
    bounds = pc.min_max(numbers)
    largest = max(abs(bounds["min"].as_py()), abs(bounds["max"].as_py()))
    if largest * len(numbers) < 1 << 63:
        return
    whole = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    halves = pa.table({"id": ids, "high": whole >> _HALF, "low": whole & ((1 << _HALF) - 1)})
    sums = halves.group_by("id").aggregate([("high", "sum"), ("low", "sum")])
    high = sums.column("high_sum").to_numpy() + (sums.column("low_sum").to_numpy() >> _HALF)
    limit = 1 << (_HALF - 1)
    if ((high < -limit) | (high >= limit)).any():
        raise SumOutgrown


def _folded(item: Aggregated, arguments: list[pa.Array], ids: Ints, groups: int) -> pa.Array:
    fold = item.how.fold
    states: list[Any] = [fold.start() for _ in range(groups)]
    rows = zip(*(rows_of(column) for column in arguments), strict=True) if arguments else iter([()] * len(ids))
    try:
        for group, row in zip(ids.tolist(), rows, strict=True):
            states[group] = fold.add(states[group], *row)
    except OverflowError as error:
        raise SumOutgrown from error
    return typed_column([fold.result(state) for state in states], item.how.result)
