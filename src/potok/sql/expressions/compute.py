"""Compute checked expressions over columns, with Arrow kernels where the semantics agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.budget import (
    LARGEST_VALUE,
    Ints,
    allowance,
    reserve,
    row_sizes,
    settle,
    size_of,
    spent,
)
from potok.sql.expressions import arithmetic, comparing, containers, nodes
from potok.sql.expressions.conversions.casts import cast_column
from potok.sql.expressions.frame import Frame, Values, reserve_spread, spread
from potok.sql.expressions.typed import ColumnRef, Typed, walk
from potok.sql.functions.function import Context, Overload, ScalarFunction, TableFunction
from potok.sql.functions.registry import all_functions
from potok.sql.functions.sizes import note_large
from potok.sql.types import VARCHAR


def compute(expression: Typed, columns: Mapping[str, pa.Array], rows: int, context: Context) -> pa.Array:
    """Compute the values of an expression.

    If a part of it fails for a row, the reason is in `context.failures`, and the innermost of these that encloses the
    part is NULL, as in ksqlDB: a CAST, an argument that is a call itself, an element of an array, map or struct, or
    else the whole expression. So a comparison does not turn a failure into false, nor NOT into true.
    """
    noted = Context(now_ms=context.now_ms)
    frame = Frame(columns, rows, noted)
    with allowance(lambda: sum(size_of(column) for column in columns.values())):
        found = spread(evaluate(expression, frame), rows)
    for row, reason in noted.reported.items():
        context.failures.setdefault(row, reason)
    return frame.without_failed(found)


def evaluate(expression: Typed, frame: Frame) -> Values:
    """Compute the values for a frame; a scalar is the value of every row."""
    kind = type(expression)
    rule = _RULES[kind]
    if kind in _GIVEN:
        return rule(expression, frame)
    before = spent()
    found = rule(expression, frame)
    if isinstance(found, pa.Scalar):
        return found
    size = size_of(found)
    if size > LARGEST_VALUE and kind in _BUILT and not _makes_rows(expression):
        found = _without_large(found, frame.context)
        size = size_of(found)
    settle(before, size)
    return found


def _makes_rows(expression: Typed) -> bool:
    """Return whether it is a table function, whose values are the elements of its lists."""
    return isinstance(expression, nodes.FunctionCall) and isinstance(
        all_functions().get(expression.name), TableFunction
    )


def _without_large(found: pa.Array, context: Context) -> pa.Array:
    """Replace values that are too large with NULL."""
    large = row_sizes(found) > LARGEST_VALUE
    if not large.any():
        return found
    note_large(large, context)
    return found.take(pa.array(np.arange(len(found)), mask=large))


def _constant(node: nodes.Constant, _: Frame) -> Values:
    return pa.scalar(node.value, node.type)


def _column(node: ColumnRef, frame: Frame) -> Values:
    return frame.column(node.column)


def _parameter(node: nodes.Parameter, frame: Frame) -> Values:
    return frame.parameter(node.name)


def _cast(node: nodes.CastTo, frame: Frame) -> Values:
    if not node.contains:
        return cast_column(spread(evaluate(node.operand, frame), frame.rows), node.type, frame.context)
    aside = frame.aside()
    found = cast_column(spread(evaluate(node.operand, aside), frame.rows), node.type, aside.context)
    return frame.contain(found, aside)


def _element(part: Typed, frame: Frame) -> Values:
    """Compute a part whose failure makes only the part NULL."""
    if isinstance(part, ColumnRef | nodes.Constant | nodes.Parameter | nodes.CastTo):
        return evaluate(part, frame)
    aside = frame.aside()
    return frame.contain(evaluate(part, aside), aside)


def _operand(part: Typed, frame: Frame) -> Values:
    """Compute a part whose parent distinguishes NULL from a value. There, NULL in arithmetic or logic is a failure, as
    in ksqlDB, which unboxes its operands: `COALESCE(a + 1, 0)` is NULL where `a` is."""
    found = evaluate(part, frame)
    if _fails_on_null(part):
        frame.note_nulls(found)
    return found


def _fails_on_null(part: Typed) -> bool:
    """Return whether NULL can only result from a NULL operand."""
    while isinstance(part, nodes.CastTo) and not part.contains:
        part = part.operand
    return isinstance(part, _UNBOXING) and part.type != VARCHAR


def _arithmetic(node: nodes.Arithmetic, frame: Frame) -> Values:
    left, right = evaluate(node.left, frame), evaluate(node.right, frame)
    return arithmetic.calculate(node.op, left, right, frame.rows, node.type, frame.context)


def _negate(node: nodes.Negate, frame: Frame) -> Values:
    return arithmetic.negate(evaluate(node.operand, frame))


def _compare(node: nodes.Compare, frame: Frame) -> Values:
    left = _operand(node.left, frame)
    aside = frame.aside() if _fails_on_null(node.right) else frame
    right = _operand(node.right, aside)
    if aside is not frame:
        # The right side is not evaluated where the left one is NULL.
        frame.merge(aside, pc.is_valid(left))
    return comparing.compare(node.op, left, right, frame.rows)


def _ranged(node: nodes.Ranged, frame: Frame) -> Values:
    operand, low, high = (_operand(part, frame) for part in node.children)
    return _maybe_not(comparing.between(operand, low, high, frame.rows), node.negated)


def _listed(node: nodes.Listed, frame: Frame) -> Values:
    operand, *items = (_operand(part, frame) for part in node.children)
    return _maybe_not(comparing.listed(operand, items, frame.rows), node.negated)


def _matches(node: nodes.Matches, frame: Frame) -> Values:
    operand, pattern = evaluate(node.operand, frame), evaluate(node.pattern, frame)
    found = comparing.like(operand, pattern, node.escape, frame.rows, frame.context)
    return _maybe_not(found, node.negated)


def _maybe_not(truth: Values, negated: bool) -> Values:
    return pc.invert(truth) if negated else truth


def _logic(node: nodes.Logic, frame: Frame) -> Values:
    """Compute AND and OR like Java's && and ||: the right side counts only where the left one does not decide; NULL
    does not decide."""
    left, aside = evaluate(node.left, frame), frame.aside()
    right = evaluate(node.right, aside)
    deciding = pa.scalar(node.op == "OR")
    decided = pc.equal(left, deciding)
    frame.merge(aside, pc.invert(comparing.known(decided)))
    return pc.if_else(decided, deciding, (pc.and_ if node.op == "AND" else pc.or_)(left, right))


def _not(node: nodes.Not, frame: Frame) -> Values:
    return pc.invert(evaluate(node.operand, frame))


def _null_test(node: nodes.NullTest, frame: Frame) -> Values:
    operand = _operand(node.operand, frame)
    return pc.is_valid(operand) if node.negated else pc.is_null(operand)


def _choice(node: nodes.Choice, frame: Frame) -> Values:
    if all(type(part) in _SELDOM_FAILS for part in walk(node)):
        aside = frame.aside()
        found = _choice_at_once(node, aside)
        if not aside.has_failed:
            return found
    return _choice_by_rows(node, frame)


def _choice_at_once(node: nodes.Choice, frame: Frame) -> Values:
    """Compute CASE with every branch computed for all rows."""
    found = _operand(node.otherwise, frame)
    for condition, result in reversed(node.whens):
        mask, chosen = _condition(condition, frame), _operand(result, frame)
        for part in (chosen, found):
            reserve_spread(part, frame.rows)
        found = pc.if_else(mask, chosen, found)
    return found


def _condition(part: Typed, frame: Frame) -> Values:
    """Compute the condition of a branch: NULL is a failure."""
    found = evaluate(part, frame)
    frame.note_nulls(found)
    return comparing.known(found)


def _choice_by_rows(node: nodes.Choice, frame: Frame) -> pa.Array:
    """Compute CASE with each branch computed only for the rows that reach it."""
    left, indexes, pieces = np.arange(frame.rows), [], []
    for condition, result in (*node.whens, (nodes.TRUE, node.otherwise)):
        here = frame.at(pa.array(left))
        truth = spread(_condition(condition, here), len(left)).to_numpy(zero_copy_only=False)
        frame.note(here)
        chosen, left = left[truth], left[~truth]
        branch = frame.at(pa.array(chosen))
        pieces.append(spread(_operand(result, branch), len(chosen)))
        frame.note(branch)
        indexes.append(chosen)
    order = np.empty(frame.rows, np.int64)
    order[np.concatenate(indexes)] = np.arange(frame.rows)
    return pa.concat_arrays(pieces).take(pa.array(order))


def _item(node: nodes.Item, frame: Frame) -> Values:
    lists = spread(evaluate(node.operand, frame), frame.rows)
    index = evaluate(node.index, frame)
    frame.note_nulls(index)
    return containers.item(lists, index, frame.rows)


def _lookup(node: nodes.Lookup, frame: Frame) -> Values:
    maps = spread(evaluate(node.operand, frame), frame.rows)
    return containers.lookup(maps, evaluate(node.key, frame), frame.rows)


def _field(node: nodes.Field, frame: Frame) -> Values:
    operand = spread(evaluate(node.operand, frame), frame.rows)
    return pc.struct_field(operand, [operand.type.get_field_index(node.name)])


def _make_array(node: nodes.MakeArray, frame: Frame) -> Values:
    return containers.make_array([_element(part, frame) for part in node.items], node.type, frame.rows)


def _make_map(node: nodes.MakeMap, frame: Frame) -> Values:
    keys = [_element(key, frame) for key, _ in node.items]
    items = [_element(value, frame) for _, value in node.items]
    return containers.make_map(keys, items, node.type, frame.rows, frame.context)


def _make_struct(node: nodes.MakeStruct, frame: Frame) -> Values:
    return containers.make_struct([_element(part, frame) for part in node.items], node.type, frame.rows)


def _call(node: nodes.FunctionCall, frame: Frame) -> Values:
    arguments = [
        _lambda(part, frame) if isinstance(part, nodes.LambdaOf) else spread(_argument(part, frame), frame.rows)
        for part in node.arguments
    ]
    overload = overload_of(node)
    sizes = None if overload.size is None else overload.size(arguments)
    if sizes is None:
        found = overload.compute(arguments, frame.rows, node.type, frame.context)
    else:
        found = _call_where_small(overload, arguments, sizes, node.type, frame.context)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _argument(part: Typed, frame: Frame) -> Values:
    return _element(part, frame) if isinstance(part, nodes.FunctionCall | nodes.Field) else _operand(part, frame)


def _call_where_small(
    overload: Overload, arguments: Sequence[Any], sizes: Ints, result: pa.DataType, context: Context
) -> pa.Array:
    """Call a function whose results may be large: a row whose result would be too large is NULL and not computed."""
    large = sizes > LARGEST_VALUE
    reserve(int(sizes[~large].sum()))
    if not large.any():
        return overload.compute(arguments, len(sizes), result, context)
    note_large(large, context)
    rows = np.flatnonzero(~large)
    inner = Context(now_ms=context.now_ms)
    found = overload.compute([argument.take(pa.array(rows)) for argument in arguments], len(rows), result, inner)
    context.failures.update({int(rows[row]): reason for row, reason in inner.failures.items()})
    indexes = np.zeros(len(sizes), np.int64)
    indexes[rows] = np.arange(len(rows))
    return found.take(pa.array(indexes, mask=large))


def _lambda(node: nodes.LambdaOf, frame: Frame) -> Callable[[Sequence[pa.Array], pa.Array], pa.Array]:
    def called(parameters: Sequence[pa.Array], rows: pa.Array) -> pa.Array:
        before = spent()
        inner = frame.at(rows, dict(zip(node.parameters, parameters, strict=True)))
        found = spread(_operand(node.body, inner), len(rows))
        frame.note(inner)
        settle(before)
        return found

    return called


def overload_of(node: nodes.FunctionCall) -> Overload:
    """Return the overload that a call was checked against."""
    if node.overload is not None:
        return node.overload
    function = all_functions()[node.name]
    if not isinstance(function, ScalarFunction | TableFunction):
        raise TypeError(f"{node.name} is not a scalar function")
    return function.overloads[node.number]


_GIVEN = frozenset({nodes.Constant, ColumnRef, nodes.Parameter})
"""Parts that need no computation."""

_BUILT = frozenset(
    {nodes.FunctionCall, nodes.Arithmetic, nodes.CastTo, nodes.MakeArray, nodes.MakeMap, nodes.MakeStruct}
)
"""Parts whose values may be larger than their inputs."""

_SELDOM_FAILS = frozenset(
    {
        nodes.Constant,
        ColumnRef,
        nodes.Parameter,
        nodes.Compare,
        nodes.Ranged,
        nodes.Listed,
        nodes.Logic,
        nodes.Not,
        nodes.NullTest,
        nodes.Negate,
        nodes.Choice,
        nodes.Field,
    }
)
"""Parts that fail at most for NULL, and cost less for all rows than for some."""

_UNBOXING = (nodes.Arithmetic, nodes.Negate, nodes.Not, nodes.Logic, nodes.Matches)
"""Parts that cannot be computed if an operand is NULL."""

_RULES: dict[type[Typed], Callable[[Any, Frame], Values]] = {
    nodes.Constant: _constant,
    ColumnRef: _column,
    nodes.Parameter: _parameter,
    nodes.CastTo: _cast,
    nodes.Arithmetic: _arithmetic,
    nodes.Negate: _negate,
    nodes.Compare: _compare,
    nodes.Ranged: _ranged,
    nodes.Listed: _listed,
    nodes.Matches: _matches,
    nodes.Logic: _logic,
    nodes.Not: _not,
    nodes.NullTest: _null_test,
    nodes.Choice: _choice,
    nodes.Item: _item,
    nodes.Lookup: _lookup,
    nodes.Field: _field,
    nodes.MakeArray: _make_array,
    nodes.MakeMap: _make_map,
    nodes.MakeStruct: _make_struct,
    nodes.FunctionCall: _call,
}
