"""A checkout, forwards and backwards."""

from __future__ import annotations

import pytest
from cloudpickle import register_pickle_by_value

from patterns.sagas import checkout
from patterns.sagas.checkout import (
    CREATED,
    NO_STOCK,
    PAID,
    REFUNDED,
    REFUSED,
    RESERVED,
    play,
    program,
    sent,
    state,
)
from potok.testing import TestDriver


@pytest.mark.parametrize("spread", [False, True])
def test_a_saga_sends_its_commands_one_after_the_other_and_completes(spread: bool) -> None:
    with TestDriver(program(), spread=spread) as driver:
        play(driver, CREATED)
        assert sent(driver) == ["ProcessPayment"] and state(driver) == "running"
        play(driver, PAID, RESERVED)
        assert sent(driver) == ["ProcessPayment", "ReserveItems"] and state(driver) == "completed"
        (done,) = driver.read("out")
        assert done.value["type"] == "order.completed"
        assert done.value["data"] == {"order_id": "o1", "payment_id": "p1"}
        assert (done.value["correlationid"], done.value["causationid"]) == ("request-o1", "inventory.reserved-o1-1")
        assert driver.dead_letters() == []


def test_a_failed_step_compensates_the_completed_ones_and_waits_for_the_end_of_each() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED, PAID, NO_STOCK)
        assert sent(driver) == ["ProcessPayment", "ReserveItems", "RefundPayment"]
        assert state(driver) == "aborting" and sent(driver, "out") == []
        play(driver, REFUNDED)
        assert state(driver) == "aborted" and sent(driver, "out") == ["order.cancelled"]


def test_commands_carry_an_idempotency_key_with_the_attempt() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED, REFUSED)
        driver.wait("10 s")
        keys = [dict(record.headers)["idempotency-key"] for record in driver.read("commands")]
        assert keys == [b"checkout/o1/payment/1", b"checkout/o1/payment/2"]


def test_a_saga_runs_on_spark(spark: object) -> None:
    register_pickle_by_value(checkout)  # Spark's workers cannot import tests
    with TestDriver(program(), spark=True) as driver:
        play(driver, CREATED, PAID, NO_STOCK, REFUNDED)
        assert sent(driver) == ["ProcessPayment", "ReserveItems", "RefundPayment"]
        assert state(driver) == "aborted" and sent(driver, "out") == ["order.cancelled"]
