"""Scenarios: `given(Checkout, OrderCreated(...)).after("16 min").then(...)`, in this process, without Spark."""

from __future__ import annotations

from typing import Any

from potok.errors import TopologyError
from potok.patterns.aggregates.declare import AGGREGATE_MARK
from potok.patterns.sagas.declare import SAGA_MARK
from potok.testing.aggregate_scenario import AggregateScenario
from potok.testing.saga_scenario import SagaScenario


def given(declared: Any, *events: Any) -> Any:
    """Begin a scenario with events that have happened.

    >>> given(Checkout, OrderCreated("o1", 5.0)).after("16 min").then(sent=[RefundPayment("o1", 5.0)], state="aborting")
    >>> given(Order, OrderCreated("o1", 5.0)).when(PayOrder("o1")).then(OrderPaid("o1"))

    Args:
        declared: A class declared with `@potok.saga`, `@potok.choreography` or `@potok.aggregate`.
        events: What has happened, in this order.
    """
    marks = getattr(declared, "__dict__", {})
    if AGGREGATE_MARK in marks:
        return AggregateScenario(declared, events)
    if SAGA_MARK not in marks:
        name = getattr(declared, "__name__", repr(declared))
        raise TopologyError(
            f"{name} has no scenarios", hint="pass a class declared with @potok.saga or @potok.aggregate"
        )
    return SagaScenario(declared, events)
