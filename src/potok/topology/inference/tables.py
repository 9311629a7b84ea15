"""Inference for table groups and joins of tables."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from potok.errors import TopologyError
from potok.expressions.expr import Column, Expr, TupleExpr
from potok.expressions.function import Function
from potok.expressions.tracing.trace import Argument, trace
from potok.records.schemas.schema import Schema
from potok.topology.aggregations import check_numbers, reduced_type
from potok.topology.inference.joins import trace_joiner
from potok.topology.inference.step import Step, arrow_of, infer_step, trace_in
from potok.topology.nodes import (
    Aggregation,
    ForeignJoin,
    ForeignKey,
    ForeignMatch,
    Node,
    TableAggregate,
    TableGroup,
    TableJoin,
    Window,
)

_NUMBERS = (pa.int64(), pa.float64())


@infer_step.register
def _table_group(node: TableGroup, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0], pair=node.pairs)
    expr, reason = _fitting(node, expr, reason)
    if node.pairs:
        key = expr.type.field(0).type if expr is not None else arrow_of(node.key_schema)
        value = expr.type.field(1).type if expr is not None else arrow_of(node.schema)
    else:
        key, value = expr.type if expr is not None else arrow_of(node.key_schema), ups[0].value
    return Step(key, value, (expr,), reason, rekeyed=True, topics=ups[0].topics)


def _fitting(node: TableGroup, expr: Expr | None, reason: str) -> tuple[Expr | None, str]:
    """Return the traced function, unless its type differs from the declared one."""
    if expr is None:
        return None, reason
    if node.pairs:
        pair = isinstance(expr, TupleExpr) and len(expr.items) == 2
        if not pair or node.key_schema is not None or node.schema is not None:
            return None, "it does not return a pair of expressions"
    elif node.key_schema is not None and expr.type != node.key_schema.arrow:
        return None, "the declared type of the key differs from the traced one"
    return expr, ""


@infer_step.register
def _table_aggregate(node: TableAggregate, ups: list[Step]) -> Step:
    expr, reason = _selector(node.aggregation, ups[0])
    check_numbers(node.aggregation, expr, node.at)
    _check_fields(node, ups[0])
    of_user = node.aggregation.kind in ("reduce", "fold")
    return Step(
        ups[0].key,
        _result(node.aggregation, None if expr is None else expr.type, ups[0].value),
        (expr,),
        reason or "rows are removed and added one by one",
        rekeyed=True,
        sharded=True,
        order_dependent=of_user,
        topics=ups[0].topics,
    )


def _check_fields(node: TableAggregate, up: Step) -> None:
    """Check field names at build time, although rows are added and retracted in Python."""
    adder, subtractor = node.aggregation.function, node.subtractor
    if node.aggregation.kind != "fold" or up.value is None or adder is None or subtractor is None:
        return
    row, anything = (Argument("key", up.key), Argument("value", up.value)), Argument("agg", None)
    for function in (adder, subtractor):
        try:
            trace(function, (*row[3 - function.arity :], anything))
        except TopologyError as error:
            error.at = function.location or error.at
            raise


def _selector(aggregation: Aggregation, up: Step) -> tuple[Expr | None, str]:
    """Return what an aggregate reads from a row, if that can be computed on columns."""
    if aggregation.kind in ("count", "reduce", "fold"):
        return None, ""
    if aggregation.function is not None:
        return trace_in(aggregation.function, up)
    return (None, "the values are dynamic") if up.value is None else (Column(up.value, "value"), "")


def _result(aggregation: Aggregation, type_: pa.DataType | None, up: pa.DataType | None) -> pa.DataType | None:
    kind = aggregation.kind
    if kind in ("count", "count_distinct"):
        return pa.int64()
    if kind == "avg":
        return pa.float64() if type_ in _NUMBERS else None
    if kind == "sum":
        return type_ if type_ in _NUMBERS else None
    if kind == "collect_list":
        return None if type_ is None else pa.list_(type_)
    if kind == "reduce":
        return reduced_type(aggregation, up)
    return arrow_of(aggregation.schema) if kind == "fold" else type_


class TableKeysDiffer(TopologyError):
    """A join of two tables whose keys can never be equal."""

    def __init__(self, node: TableJoin, left: str, right: str) -> None:
        super().__init__(
            f'cannot join table "{node.left.name}" to table "{node.right.name}": '
            f"the keys of the one are {left}, of the other {right}",
            hint="declare both keys with one type, or name the field that holds the other key: on=...",
            at=node.at,
        )


@infer_step.register
def _table_join(node: TableJoin, ups: list[Step]) -> Step:
    left, right = ups
    kinds = [_key_kind(up) for up in ups]
    if kinds[0] != kinds[1]:
        raise TableKeysDiffer(node, *kinds)
    return Step(
        left.key,
        joined_type(node.function, node.schema, left.key, left, right),
        (None,),
        "rows are joined one by one",
        rekeyed=True,
        sharded=left.window is None,
        window=_both_windows(left.window, right.window),
        topics=left.topics | right.topics,
    )


def _both_windows(left: Window | None, right: Window | None) -> Window | None:
    """Return the windows of a joined table: open and readable as long as those of either side."""
    if left is None or right is None:
        return None
    times = {name: max(getattr(left, name), getattr(right, name)) for name in ("grace_ms", "retention_ms")}
    return replace(left, **times)


def _key_kind(up: Step) -> str:
    key = "dynamic" if up.key is None else str(up.key)
    return key if up.window is None else f"{key} in windows ({up.window.layout})"


def joined_type(
    function: Function | None, schema: Schema | None, key: pa.DataType | None, left: Step, right: Step
) -> pa.DataType | None:
    """Return the type of a joined row; without a joiner it contains both rows."""
    if function is not None or schema is not None:
        # Rows are joined one by one, but a field that does not exist is reported at build time.
        trace_joiner(function, schema, key, left, right)
        return arrow_of(schema)
    if left.value is None or right.value is None:
        return None
    return pa.struct([pa.field("left", left.value), pa.field("right", right.value)])


class ForeignKeyDiffers(TopologyError):
    """A foreign-key function whose result cannot be a key of the other table."""

    def __init__(self, node: ForeignMatch, found: pa.DataType, wanted: pa.DataType) -> None:
        super().__init__(
            f'{node.left.function.name} returns {found}, but the keys of table "{node.right.name}" are {wanted}',
            hint='declare both with one type, for example builder.table("customers", key=int)',
            at=node.at,
        )


class WindowsReferred(TopologyError):
    """A foreign-key join from or to a windowed table."""

    def __init__(self, node: Node, table: str) -> None:
        super().__init__(
            f'the windows of table "{table}" cannot be joined by a foreign key',
            hint="give their rows keys of their own: table.to_stream().select_key(...).to_table()",
            at=node.at,
        )


@infer_step.register
def _foreign_key(node: ForeignKey, ups: list[Step]) -> Step:
    if ups[0].window is not None:
        raise WindowsReferred(node, node.upstream.name)
    expr, reason = trace_in(node.function, ups[0])
    key = None if expr is None else expr.type
    return Step(key, ups[0].value, (expr,), reason, rekeyed=True, topics=ups[0].topics, home=(ups[0].key,))


@infer_step.register
def _foreign_match(node: ForeignMatch, ups: list[Step]) -> Step:
    left, right = ups
    if right.window is not None:
        raise WindowsReferred(node, node.right.name)
    if left.key is not None and right.key is not None and left.key != right.key:
        raise ForeignKeyDiffers(node, left.key, right.key)
    return Step(
        left.home[0],
        joined_type(node.function, node.schema, left.home[0], left, right),
        (None,),
        "rows are joined one by one",
        rekeyed=True,
        topics=left.topics | right.topics,
    )


@infer_step.register
def _foreign_join(node: ForeignJoin, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(), reason="", sharded=True)
