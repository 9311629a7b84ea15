"""Answers that come late, twice, or for an instance that does not exist."""

from __future__ import annotations

from typing import Any

import pytest

import potok
from patterns.sagas import checkout
from patterns.sagas.checkout import (
    CREATED,
    NO_STOCK,
    PAID,
    REFUNDED,
    REFUSED,
    RESERVED,
    Checkout,
    OrderCreated,
    PaymentFailed,
    PaymentProcessed,
    ProcessPayment,
    RefundPayment,
    ReserveItems,
    event,
    key_of,
    play,
    program,
    sent,
    state,
)
from potok.testing import TestDriver, given

ORDER = OrderCreated("o1", 5.0, "book")


def history(driver: TestDriver, order: str = "o1") -> list[str]:
    found = driver.table("checkout.instances").get(order)["history"]
    return [" ".join(filter(None, (entry["what"], entry.get("step")))) for entry in found]


def test_a_duplicate_changes_nothing() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED, CREATED, REFUSED, REFUSED, REFUSED)
        assert history(driver) == ["started", "sent payment", "failed payment"]
        driver.wait("10 s")
        play(driver, REFUSED, PAID, PAID, CREATED)
        assert sent(driver) == ["ProcessPayment", "ProcessPayment", "ReserveItems"]
        assert driver.dead_letters() == []


def test_an_answer_after_the_timeout_is_noted_and_changes_nothing() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED)
        driver.wait("15 min")
        play(driver, PAID)
        assert sent(driver) == ["ProcessPayment", "RefundPayment"] and state(driver) == "aborting"
        assert history(driver)[-1] == "answered late payment"
        play(driver, REFUNDED)
        assert state(driver) == "aborted" and driver.dead_letters() == []


def test_stragglers_of_an_ended_instance_are_recognised_as_long_as_it_is_kept() -> None:
    with TestDriver(program()) as driver:
        play(driver, CREATED, PAID, RESERVED)
        play(
            driver,
            event("payment.failed", number=2, reason="?"),
            event("order.created", number=2, amount=1.0, item="x"),
        )
        assert history(driver)[-2:] == ["failed late payment", "exists already"]
        assert state(driver) == "completed" and driver.dead_letters() == []
        driver.wait("7 days")
        assert state(driver) is None
        assert driver.table("checkout.completed").get("o1") is None
        play(driver, event("payment.failed", number=3, reason="?"))
        (letter,) = driver.dead_letters()
        assert 'for an instance that does not exist in saga "checkout"' in letter.error


def test_an_answer_to_a_step_that_has_not_started_is_a_dead_letter() -> None:
    given(Checkout, ORDER).when(checkout.InventoryReserved("o1")).then(sent=[], state="running", dead_letters=1)


def test_an_event_of_an_unknown_instance_is_a_dead_letter_by_default() -> None:
    given(Checkout).when(PaymentProcessed("o1", "p1")).then(sent=[], state=None, dead_letters=1)


def declared(missing: Any) -> type:
    @potok.saga("checkout", by="order_id", starts=OrderCreated, missing=missing)
    class Made:
        payment = potok.step(
            send=ProcessPayment, ok=PaymentProcessed, failed=PaymentFailed, undo=RefundPayment, timeout="15 min"
        )
        stock = potok.step(send=ReserveItems, ok=checkout.InventoryReserved, failed=checkout.InventoryFailed)

    return Made


def test_it_can_be_ignored() -> None:
    given(declared("ignore")).when(PaymentProcessed("o1", "p1")).then(sent=[], state=None, dead_letters=0)


def test_it_can_start_an_instance_at_its_step_which_takes_the_missing_data_from_the_first_event() -> None:
    (
        given(declared("start"))
        .when(PaymentProcessed("o1", "p1"))
        .then(sent=[], state="stuck", dead_letters=1)
        .when(ORDER)
        .then(sent=[ReserveItems("o1", "book")], state="running")
        .when(checkout.InventoryReserved("o1"))
        .then(state="completed")
    )


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_batches_do_not_matter(batch: int) -> None:
    with TestDriver(program(), partitions={"order-events": 2}) as driver:
        for order in ("o1", "o2", "o3"):
            for one in (event("order.created", order, amount=1.0, item="i"), event("payment.processed", order)):
                one["data"].setdefault("payment_id", "p")
                driver.send("order-events", one, key=order)
            driver.send("order-events", NO_STOCK | {"data": {"order_id": order}}, key=order)
        driver.run(batch_records=batch)
        for order in ("o1", "o2", "o3"):
            keys = [key_of(r) for r in driver.read("commands")]
            mine = [key.split("/", 2)[2] for key in keys if key.startswith(f"checkout/{order}/")]
            assert mine == ["payment/1", "stock/1", "payment.undo/1"]
            assert state(driver, order) == "aborting"
