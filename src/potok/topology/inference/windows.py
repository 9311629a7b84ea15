"""Inference for aggregates in windows that follow the records of a key."""

from __future__ import annotations

from dataclasses import replace

from potok.expressions.expr import Expr
from potok.topology.aggregations import AggregatePlan, row_by_row
from potok.topology.inference.step import Step, trace_in
from potok.topology.nodes import Session, Sliding, Window


def plan_in_window(plan: AggregatePlan, window: Window | None) -> AggregatePlan:
    """Plan an aggregate in windows: sessions with a gap merge as columns; other windows need their records again.

    Their records are aggregated in the order of event time, so the result does not depend on the order of
    arrival.
    """
    if not isinstance(window, Session | Sliding):
        return plan
    plan = replace(plan, order_dependent=False)
    if isinstance(window, Session) and window.plain:
        return plan
    kind = "sliding windows" if isinstance(window, Sliding) else "such sessions"
    return row_by_row(plan, f"{kind} are recomputed when a record arrives")


def trace_marks(window: Window | None, up: Step) -> tuple[Expr | None, ...]:
    """Return the expressions of `opens` and `closes`, if given."""
    if not isinstance(window, Session):
        return ()
    return tuple(trace_in(test, up)[0] for test in (window.opens, window.closes) if test is not None)
