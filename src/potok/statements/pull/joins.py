"""Joins of pull queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.keys import encode_keys
from potok.sql.analysis.joins import JoinAnalysis
from potok.sql.budget import reserve, reserve_taken
from potok.sql.functions.function import Context
from potok.sql.syntax import ast
from potok.statements.frames import Frame

Ints = npt.NDArray[np.int64]

NOTHING = -1


def join_frames(left: Frame, right: Frame, plan: JoinAnalysis, context: Context) -> Frame:
    """Join two frames. A row without a match has NULL in the columns of the other side, if the join type keeps it."""
    kind = ast.JoinKind
    lefts, rights = left.computed(plan.left, context), right.computed(plan.right, context)
    codes = codes_of([pa.concat_arrays(pair) for pair in zip(lefts, rights, strict=True)])
    at_left, at_right = _matches(codes[: left.rows], codes[left.rows :])
    if plan.kind in (kind.LEFT, kind.FULL):
        alone = np.setdiff1d(np.arange(left.rows), at_left)
        at_left = np.concatenate([at_left, alone])
        at_right = np.concatenate([at_right, np.full(len(alone), NOTHING)])
        order = np.argsort(at_left, kind="stable")
        at_left, at_right = at_left[order], at_right[order]
    if plan.kind in (kind.RIGHT, kind.FULL):
        alone = np.setdiff1d(np.arange(right.rows), at_right)
        at_left = np.concatenate([at_left, np.full(len(alone), NOTHING)])
        at_right = np.concatenate([at_right, alone])
    for side, indexes in ((left, at_left), (right, at_right)):
        for column in side.columns.values():
            reserve_taken(column, np.maximum(indexes, 0))
    one, other = left.take(_nullable_indexes(at_left)), right.take(_nullable_indexes(at_right))
    return Frame({**one.columns, **other.columns}, len(at_left))


def _nullable_indexes(at: Ints) -> pa.Array:
    return pa.array(at, mask=at == NOTHING)


def codes_of(columns: Sequence[pa.Array]) -> Ints:
    """Number the rows from 0 without gaps: equal numbers where all columns are equal, `NOTHING` where any is NULL."""
    rows = len(columns[0])
    plain = [encode_keys(column) if _is_odd(column.type) else column for column in columns]
    there: Any = np.arange(rows)
    if any(column.null_count for column in plain):
        missing = np.zeros(rows, np.bool_)
        for column in plain:
            missing |= column.is_null().to_numpy(zero_copy_only=False)
        there = np.flatnonzero(~missing)
        plain = [column.take(pa.array(there)) for column in plain]
    names = [str(index) for index in range(len(plain))]
    table = pa.table([*plain, pa.array(there)], names=[*names, "row"])
    grouped = table.group_by(names, use_threads=False).aggregate([("row", "list")])
    members = grouped.column("row_list").combine_chunks()
    counts = pc.list_value_length(members).to_numpy(zero_copy_only=False)
    codes: Ints = np.full(rows, NOTHING, np.int64)
    codes[members.flatten().to_numpy(zero_copy_only=False)] = np.repeat(np.arange(len(members)), counts)
    return codes


def _is_odd(type_: pa.DataType) -> bool:
    """Return whether values of the type may be equal but not identical to Arrow, or cannot be compared by it."""
    return bool(pa.types.is_nested(type_) or pa.types.is_floating(type_))


def _matches(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of rows with the same code, ordered by left row, then by right row.

    `pyarrow.Table.join` does not limit the size of its result, has no defined order, and rejects nested columns.
    """
    order: Any = np.argsort(right, kind="stable")
    order = order[np.count_nonzero(right == NOTHING) :]
    codes = int(max(left.max(initial=NOTHING), right.max(initial=NOTHING))) + 1
    # One more than the number of codes: `NOTHING` indexes the last one, which has no matches.
    of_code = np.bincount(right[order], minlength=codes + 1)
    counts = of_code[left]
    reserve(32 * int(counts.sum()))
    at_left = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(at_left)) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = (np.cumsum(of_code) - of_code)[left]
    return at_left, order[np.repeat(firsts, counts) + within]
