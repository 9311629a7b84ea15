"""Inference for patterns."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from potok.expressions.expr import Expr
from potok.topology.inference.step import Step, infer_step, trace_in
from potok.topology.nodes import Match, Timeouts


@infer_step.register
def _match(node: Match, ups: list[Step]) -> Step:
    up = ups[0]
    exprs: list[Expr | None] = []
    reasons: list[str] = []
    for definition in node.pattern.definitions:
        if definition.condition is None:
            continue
        expr, reason = (
            (None, f'the condition of "{definition.name}" reads the match so far')
            if definition.iterative
            else trace_in(definition.condition, up)
        )
        exprs.append(expr)
        reasons += [reason] if reason else []
    value = None if up.value is None else pa.struct([(name, pa.list_(up.value)) for name in node.variables])
    # Matches of one key follow each other in time, whatever partitions their records came from.
    return Step(
        up.key, value, tuple(exprs), next(iter(reasons), ""), rekeyed=up.rekeyed, sharded=True, topics=up.topics
    )


@infer_step.register
def _timeouts(node: Timeouts, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(), reason="")
