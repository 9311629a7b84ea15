"""Joins of pull queries: rows of both sides with equal keys, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.keys import encode_keys
from potok.sql.budget import reserve, reserve_taken
from potok.sql.errors import Refused, TypeMistake
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import Typed
from potok.sql.functions.function import Context, common_type
from potok.sql.lowering.scope import Rows, RowScope
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import names_of
from potok.sql.types import type_name
from potok.statements.frames import Frame

Ints = npt.NDArray[np.int64]

NOTHING = -1


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """What of the rows so far equals what of the rows that come in."""

    kind: ast.JoinKind
    left: tuple[Typed, ...]
    right: tuple[Typed, ...]


def plan_join(left: Rows, right: Rows, clause: ast.Join, types: Mapping[str, pa.DataType]) -> JoinPlan:
    if clause.within is not None:
        hint = "leave it out: a query that ends sees all records at once; compare ROWTIME in WHERE"
        raise Refused("WITHIN is for queries that keep running", hint=hint, place=clause.within.at)
    pairs = [_sides(part, left, right, types) for part in _conjuncts(clause.condition)]
    return JoinPlan(clause.kind, tuple(one for one, _ in pairs), tuple(other for _, other in pairs))


def _conjuncts(condition: ast.Expression) -> Iterator[ast.Binary]:
    if isinstance(condition, ast.Binary) and condition.op == "AND":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, ast.Binary) and condition.op == "=":
        yield condition
    else:
        hint = f"write ON a.column = b.column, and put {show(condition)} into WHERE"
        raise Refused("a join is by equalities", hint=hint, place=condition.at)


def _sides(part: ast.Binary, left: Rows, right: Rows, types: Mapping[str, pa.DataType]) -> tuple[Typed, Typed]:
    where = [_side_of(side, left, right) for side in (part.left, part.right)]
    if where[0] is where[1]:
        hint = "compare a column of the one source with a column of the other"
        raise Refused("both sides of the condition are of the same source", hint=hint, place=part.at)
    one, other = (part.left, part.right) if where[0] is left else (part.right, part.left)
    scopes = RowScope(left, types), RowScope(right, types)
    checked = check(one, scopes[0]), check(other, scopes[1])
    found = [typed.type for typed in checked]
    if found[0] == found[1]:
        return checked
    to = common_type(found)
    if to is None:
        hint = f"write CAST({show(one)} AS {type_name(found[1])})"
        raise TypeMistake(f"cannot join {type_name(found[0])} with {type_name(found[1])}", hint=hint, place=part.at)
    return check(one, scopes[0], to=to), check(other, scopes[1], to=to)


def _side_of(part: ast.Expression, left: Rows, right: Rows) -> Rows:
    for name in names_of(part):
        if name.source in right.sources:
            return right
        if name.source in left.sources:
            return left
        found = [rows for rows in (left, right) if rows.find(name.name, name.source)]
        if found:
            return found[0]
    hint = "each side of the equality names a column of one source"
    raise Refused(f"{show(part)} is of neither side of the join", hint=hint, place=part.at)


def join_frames(left: Frame, right: Frame, plan: JoinPlan, context: Context) -> Frame:
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
