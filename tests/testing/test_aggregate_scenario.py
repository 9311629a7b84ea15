"""Scenarios of aggregates."""

from __future__ import annotations

import pytest

from patterns.aggregates.orders import CreateOrder, Note, Order, OrderCreated, OrderNoted, OrderPaid, PayOrder
from potok.errors import TopologyError
from potok.testing import given

CREATED = OrderCreated("o1", 5.0, ["book"])


def test_a_scenario_compares_the_events_of_a_command() -> None:
    given(Order, CREATED).when(PayOrder("o1")).then(OrderPaid("o1"), state=Order("paid", 5.0, ["book"]))


def test_a_scenario_continues_after_a_comparison() -> None:
    scenario = given(Order).when(CreateOrder("o1", 5.0, ["book"])).then(CREATED)
    scenario.when(PayOrder("o1"), Note("o1", "n")).then(OrderPaid("o1"), OrderNoted("o1", "n0"))


def test_a_scenario_expects_rejections_and_versions() -> None:
    given(Order).when(PayOrder("o1")).then(rejected="only a created order", state=None)
    given(Order, CREATED).when(PayOrder("o1"), expected_version=2).then(status="wrong_version")
    given(Order).when(Note("o1", "boom", 2)).then(status="failed", state=None)


def test_a_scenario_that_differs_fails_with_both_sides() -> None:
    with pytest.raises(AssertionError, match="PayOrder was rejected: only a created order can be paid; expected acce"):
        given(Order).when(PayOrder("o1")).then(OrderPaid("o1"))
    with pytest.raises(AssertionError, match=r"events: .*OrderPaid.*, expected \[\]"):
        given(Order, CREATED).when(PayOrder("o1")).then()
    with pytest.raises(AssertionError, match="PayOrder was accepted; expected rejected"):
        given(Order, CREATED).when(PayOrder("o1")).then(OrderPaid("o1"), rejected="no")
    with pytest.raises(AssertionError, match=r"the aggregate is .*paid.*, expected .*created"):
        given(Order, CREATED).when(PayOrder("o1")).then(OrderPaid("o1"), state=Order("created"))
    with pytest.raises(AssertionError, match="rejected because 'only a created order can be paid', expected 'else'"):
        given(Order).when(PayOrder("o1")).then(rejected="else")
    with pytest.raises(AssertionError, match="cannot be applied: ValueError: this note does not fit"):
        given(Order, OrderNoted("o1", "unfit")).when(PayOrder("o1")).then()


def test_a_scenario_refuses_what_the_aggregate_does_not_know() -> None:
    with pytest.raises(TopologyError, match="is not an event of aggregate"):
        given(Order, PayOrder("o1"))
    with pytest.raises(TopologyError, match="is not a command of aggregate"):
        given(Order).when(CREATED)
