"""The result of inference for a step. Each family of nodes has its own module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import pyarrow as pa

from potok.expressions.expr import Expr, TupleExpr
from potok.expressions.function import Function
from potok.expressions.tracing.trace import Traced, Untraceable
from potok.records.schemas.schema import Schema
from potok.topology.aggregations import AggregatePlan, trace_function
from potok.topology.nodes import Node, Window


@dataclass(frozen=True, slots=True)
class Step:
    """The result of inference for a node.

    `key` and `value` are the output types; None is dynamic. `exprs` holds one expression for each function of
    the node, or None if that function runs as Python, and `reason` says why. `intact` means that values are
    unchanged since they were read from their topic; `rekeyed` that the records of a key may come from several
    partitions; `sharded` that records are on the shard of their key. `window` is that of the table whose rows
    these are; `home` is the type of the key that records return to after a lookup under another key.
    """

    key: pa.DataType | None
    value: pa.DataType | None
    exprs: tuple[Expr | None, ...] = ()
    reason: str = ""
    intact: bool = False
    rekeyed: bool = False
    sharded: bool = False
    plan: AggregatePlan | None = None
    order_dependent: bool = False
    window: Window | None = None
    topics: frozenset[str] = frozenset()
    home: tuple[pa.DataType | None, ...] = ()

    @property
    def native(self) -> bool:
        return not self.reason


def arrow_of(schema: Schema | None) -> pa.DataType | None:
    return schema.arrow if schema is not None else None


def trace_in(function: Function, up: Step, *, pair: bool = False) -> tuple[Expr | None, str]:
    traced = trace_function(function, up.key, up.value)
    if isinstance(traced, Traced):
        if isinstance(traced.expr, TupleExpr) and not pair:
            return None, "it returns a tuple"
        return traced.expr, ""
    assert isinstance(traced, Untraceable)
    return None, traced.reason


@singledispatch
def infer_step(node: Node, ups: list[Step]) -> Step:  # noqa: ARG001 - every kind of node has the same two
    raise TypeError(f"no inference for {type(node).__name__}")


def windowed_key(key: pa.DataType | None, window: Window | None) -> pa.DataType | None:
    """Return the key of a windowed table: the grouping key with the window's start and end."""
    if key is None or window is None:
        return key
    return pa.struct([pa.field("key", key), pa.field("start", pa.int64()), pa.field("end", pa.int64())])
