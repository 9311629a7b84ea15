"""Running instances keep the definition that they began with."""

from __future__ import annotations

from typing import Any

import pytest

import potok
from patterns.sagas.checkout import (
    CREATED,
    PAID,
    RESERVED,
    Checkout,
    InventoryFailed,
    InventoryReserved,
    OrderCreated,
    PaymentFailed,
    PaymentProcessed,
    ProcessPayment,
    RefundPayment,
    ReserveItems,
    event,
    play,
    program,
    sent,
    state,
)
from potok.errors import PotokError, TopologyError
from potok.patterns.sagas.control import action_of
from potok.testing import TestDriver


def stock_first(version: int) -> Any:
    @potok.saga("checkout", by="order_id", starts=OrderCreated, version=version)
    class Changed:
        stock = potok.step(send=ReserveItems, ok=InventoryReserved, failed=InventoryFailed)
        payment = potok.step(send=ProcessPayment, ok=PaymentProcessed, failed=PaymentFailed, undo=RefundPayment)

    return Changed


SECOND = (event("order.created", "o2", amount=1.0, item="x"),)


def test_instances_keep_their_version_and_new_ones_take_the_newest() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED)
        driver.replace(program(stock_first(2), earlier=[Checkout]))
        play(driver, PAID, *SECOND)
        assert sent(driver) == ["ProcessPayment", "ReserveItems", "ReserveItems"]
        play(driver, RESERVED, event("inventory.reserved", "o2"))
        assert state(driver) == "completed" and state(driver, "o2") == "running"
        assert sent(driver)[-1] == "ProcessPayment" and driver.dead_letters() == []
        instances = driver.table("checkout.instances")
        assert (instances.get("o1")["version"], instances.get("o2")["version"]) == (1, 2)


def test_a_version_that_is_gone_loses_nothing() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED)
        driver.replace(program(stock_first(2)))
        play(driver, PAID)
        (letter,) = driver.dead_letters()
        assert "began with version 1" in letter.error and "earlier=[...]" in letter.error
        driver.wait("15 min")
        assert state(driver) == "stuck"
        driver.replace(program(stock_first(2), earlier=[Checkout]))
        driver.send("checkout-control", action_of("order_id", "o1", "retry")[1])
        driver.run()
        assert state(driver) == "aborting" and sent(driver) == ["ProcessPayment", "RefundPayment"]


def test_a_version_whose_steps_changed_is_refused() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED)
        with pytest.raises(PotokError, match="its steps changed, and instances of version 1 may be running"):
            driver.replace(program(stock_first(1)))


def test_an_earlier_version_is_of_the_same_saga() -> None:
    @potok.saga("other", by="order_id", starts=OrderCreated)
    class Other:
        payment = potok.step(send=ProcessPayment, ok=PaymentProcessed)

    with pytest.raises(TopologyError, match='"checkout" is not an earlier version of saga "other"'):
        program(Other, earlier=[Checkout])
