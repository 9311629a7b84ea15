"""Joins of pull queries: rows of both sides with equal keys, side by side."""

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
    """Rows of both sides; a side without a partner has NULL in all columns of the other, if the kind keeps it."""
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
    for side, places in ((left, at_left), (right, at_right)):
        for column in side.columns.values():
            reserve_taken(column, np.maximum(places, 0))
    one, other = left.take(_places(at_left)), right.take(_places(at_right))
    return Frame({**one.columns, **other.columns}, len(at_left))


def _places(at: Ints) -> pa.Array:
    return pa.array(at, mask=at == NOTHING)


def codes_of(columns: Sequence[pa.Array]) -> Ints:
    """A number for each row: equal where all columns are equal, `NOTHING` where any of them is NULL."""
    rows = len(columns[0])
    codes: Ints = np.zeros(rows, np.int64)
    missing = np.zeros(rows, np.bool_)
    for column in columns:
        plain = column if not _is_odd(column.type) else encode_keys(column)
        encoded = pc.dictionary_encode(plain).indices
        missing |= encoded.is_null().to_numpy(zero_copy_only=False)
        numbers = encoded.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        paired = codes * (int(numbers.max(initial=0)) + 1) + numbers
        codes = np.unique(paired, return_inverse=True)[1].astype(np.int64)
    codes[missing] = NOTHING
    return codes


def _is_odd(type_: pa.DataType) -> bool:
    """Types whose values may be equal without being the same to Arrow, or that it does not compare."""
    return bool(pa.types.is_nested(type_) or pa.types.is_floating(type_))


def _matches(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """All pairs of rows with one code, in the order of the left ones, then of the right ones."""
    order: Any = np.argsort(right, kind="stable")
    ordered = right[order]
    first = np.searchsorted(ordered, left, side="left")
    counts = np.searchsorted(ordered, left, side="right") - first
    counts[left == NOTHING] = 0
    reserve(32 * int(counts.sum()))
    at_left = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(at_left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at_left, order[np.repeat(first, counts) + within]
