"""Scenarios: `given(Checkout, OrderCreated(...)).after("16 min").then(...)`, in this process, without Spark."""

from __future__ import annotations

from typing import Any

from potok.errors import TopologyError
from potok.patterns.sagas.declare import SAGA_MARK
from potok.testing.saga_scenario import SagaScenario


def given(declared: Any, *events: Any) -> SagaScenario:
    """Begin a scenario with events that have happened.

    >>> given(Checkout, OrderCreated("o1", 5.0)).after("16 min").then(sent=[RefundPayment("o1", 5.0)], state="aborting")

    Args:
        declared: A class declared with `@potok.saga` or `@potok.choreography`.
        events: What has happened, in this order.
    """
    if SAGA_MARK not in getattr(declared, "__dict__", {}):
        name = getattr(declared, "__name__", repr(declared))
        raise TopologyError(f"{name} has no scenarios", hint="pass a class declared with @potok.saga")
    return SagaScenario(declared, events)
