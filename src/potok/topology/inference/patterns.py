"""Inference for patterns."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from potok.expressions.expr import Expr, Literal
from potok.topology.inference.step import Step, infer_step, trace_in
from potok.topology.nodes import Match, Timeouts
from potok.topology.patterns.check import check_possible
from potok.topology.patterns.output import Shift


@infer_step.register
def _match(node: Match, ups: list[Step]) -> Step:
    up = ups[0]
    if node.shifts:
        assert up.value is not None
        up = replace(up, value=shifted_type(up.value, node.shifts))
    exprs: list[Expr | None] = []
    reasons: list[str] = []
    never: list[str] = []
    for definition in node.pattern.definitions:
        if definition.condition is None:
            continue
        expr, reason = (
            (None, f'the condition of "{definition.name}" reads the match so far')
            if definition.iterative
            else trace_in(definition.condition, up)
        )
        exprs.append(expr)
        if isinstance(expr, Literal) and not expr.value:
            never.append(definition.name)
        reasons += [reason] if reason else []
    check_possible(node.pattern, frozenset(never), node.at)
    value = None if up.value is None else pa.struct([(name, pa.list_(up.value)) for name in node.variables])
    if node.output is not None:
        value = node.output.type
    # Matches of one key follow each other in time, whatever partitions their records came from.
    return Step(
        up.key, value, tuple(exprs), next(iter(reasons), ""), rekeyed=up.rekeyed, sharded=True, topics=up.topics
    )


def shifted_type(value: pa.DataType, shifts: tuple[Shift, ...]) -> pa.DataType:
    """Return the type of values with the fields of neighbouring records."""
    added = [pa.field(shift.name, value.field(shift.field).type) for shift in shifts]
    return pa.struct([*value, *added])


@infer_step.register
def _timeouts(node: Timeouts, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(), reason="")
