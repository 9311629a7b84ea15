"""Inference for foreign-key joins."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from potok.errors import TopologyError
from potok.topology.inference.step import Step, infer_step, trace_in
from potok.topology.inference.tables import joined_type
from potok.topology.nodes import ForeignJoin, ForeignKey, ForeignMatch, Node


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
