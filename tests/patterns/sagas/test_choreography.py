"""Events that services exchange among themselves, watched: the drawing of a checkout, with its compensation."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import potok
from patterns.sagas.checkout import (
    InventoryFailed,
    InventoryReserved,
    OrderCancelled,
    OrderCompleted,
    OrderCreated,
    PaymentFailed,
    PaymentProcessed,
    PaymentRefunded,
    event,
)
from potok.errors import TopologyError
from potok.snapshots.progress import read_progress
from potok.testing import TestDriver, given


@potok.choreography("checkout", by="order_id", starts=OrderCreated, completed=OrderCompleted)
class Watched:
    payment = potok.step(ok=PaymentProcessed, failed=PaymentFailed, undone=PaymentRefunded, timeout="15 min")
    inventory = potok.step(ok=InventoryReserved, failed=InventoryFailed)


CREATED, PAID, RESERVED = OrderCreated("o1", 5.0, "book"), PaymentProcessed("o1", "p1"), InventoryReserved("o1")


def test_an_order_is_followed_to_its_end_and_nothing_is_sent() -> None:
    (
        given(Watched, CREATED, PAID, RESERVED)
        .then(sent=[], emitted=[], state="running")
        .when(OrderCompleted("o1", "p1"))
        .then(sent=[], emitted=[], state="completed")
    )


def test_a_failure_is_followed_by_the_compensations_that_others_run() -> None:
    (
        given(Watched, CREATED, PAID, InventoryFailed("o1"))
        .then(state="aborting")
        .when(PaymentRefunded("o1"))
        .then(sent=[], state="aborted")
    )


def test_a_failure_with_nothing_to_compensate_ends_at_once() -> None:
    given(Watched, CREATED, PaymentFailed("o1", "no money")).then(state="aborted")


def test_a_compensation_that_is_seen_before_its_failure_is_known() -> None:
    (
        given(Watched, CREATED, PAID, PaymentRefunded("o1"))
        .then(state="aborted")
        .when(InventoryFailed("o1"))
        .then(state="aborted")
    )


def test_the_event_that_ends_an_abort_can_be_declared() -> None:
    @potok.choreography("checkout", by="order_id", starts=OrderCreated, aborted=OrderCancelled)
    class Cancelled:
        payment = potok.step(ok=PaymentProcessed, failed=PaymentFailed, undone=PaymentRefunded)
        inventory = potok.step(ok=InventoryReserved, failed=InventoryFailed)

    story = given(Cancelled, CREATED, PAID, InventoryFailed("o1"), PaymentRefunded("o1")).then(state="aborting")
    story.when(OrderCancelled("o1")).then(state="aborted")
    given(Cancelled, CREATED, PAID, RESERVED).then(state="completed")


def test_an_overdue_step_makes_the_instance_stuck_until_its_event_comes() -> None:
    (
        given(Watched, CREATED)
        .after("15 min")
        .then(state="stuck", dead_letters=1)
        .when(PAID)
        .then(state="running")
        .when(RESERVED, OrderCompleted("o1", "p1"))
        .then(state="completed")
    )
    given(Watched, CREATED).after("15 min").operator("skip").then(state="running", dead_letters=1)
    given(Watched, CREATED).operator("abort").then(state="aborted")
    given(Watched, CREATED).after("15 min").operator("retry").then(state="stuck", dead_letters=2)


@pytest.mark.parametrize("order", list(itertools.permutations([CREATED, PAID, RESERVED])))
def test_the_events_of_several_topics_may_come_in_any_order(order: tuple[Any, ...]) -> None:
    given(Watched, *order).when(OrderCompleted("o1", "p1")).then(state="completed", dead_letters=0)


def test_all_steps_done_end_it_unless_an_event_does() -> None:
    @potok.choreography("checkout", by="order_id", starts=OrderCreated)
    class Short:
        payment = potok.step(ok=PaymentProcessed)
        inventory = potok.step(ok=InventoryReserved)

    for order in itertools.permutations([CREATED, PAID, RESERVED]):
        given(Short, *order).then(state="completed", dead_letters=0)


def test_several_topics_make_one_view_with_the_ids_of_their_events() -> None:
    builder = potok.StreamsBuilder("view")
    builder.saga(Watched, events=["orders", "payments", "stock"])
    with TestDriver(builder) as driver:
        for topic, one in (
            ("orders", event("order.created", amount=5.0, item="book")),
            ("payments", event("payment.processed", payment_id="p1")),
            ("stock", event("inventory.failed")),
            ("payments", event("payment.refunded")),
        ):
            driver.send(topic, one)
            driver.run()
        found = driver.table("checkout.instances").get("o1")
        assert found["state"] == "aborted"
        assert [(one["what"], one.get("step"), one["event_id"]) for one in found["history"]] == [
            ("started", None, "order.created-o1-1"),
            ("done", "payment", "payment.processed-o1-1"),
            ("failed", "inventory", "inventory.failed-o1-1"),
            ("aborting", None, "inventory.failed-o1-1"),
            ("undone", "payment", "payment.refunded-o1-1"),
            ("aborted", None, "payment.refunded-o1-1"),
        ]


def test_the_progress_of_the_query_counts_stuck_instances() -> None:
    @potok.choreography("checkout", by="order_id", starts=OrderCreated, clock="event")
    class Timed:
        payment = potok.step(ok=PaymentProcessed, timeout="15 min")

    def stuck(driver: TestDriver) -> int:
        progress = read_progress(driver.broker, "view")
        assert progress is not None
        return progress.state_keys["checkout.stuck"]

    builder = potok.StreamsBuilder("view")
    builder.saga(Timed, events="orders")
    with TestDriver(builder) as driver:
        driver.send("orders", event("order.created", "o1", amount=5.0, item="book"), timestamp=0)
        driver.send("orders", event("order.created", "o2", amount=5.0, item="book"), timestamp=3_600_000)
        driver.run()
        assert stuck(driver) == 1
        driver.send("orders", event("payment.processed", "o1", payment_id="p1"), timestamp=3_600_001)
        driver.send("orders", event("order.created", "o3", amount=5.0, item="book"), timestamp=4_000_000)
        driver.run()
        assert stuck(driver) == 0


def test_a_choreography_sends_no_commands() -> None:
    @potok.choreography("checkout", by="order_id", starts=OrderCreated)
    class Sends:
        payment = potok.step(send=OrderCancelled, ok=PaymentProcessed)

    with pytest.raises(TopologyError, match="a choreography sends no commands") as caught:
        given(Sends)
    assert caught.value.at is not None and caught.value.at.file.endswith("test_choreography.py")


def test_duplicates_are_recognised_by_their_id() -> None:
    builder = potok.StreamsBuilder("view")
    builder.saga(Watched, events="orders")
    created = event("order.created", amount=5.0, item="book")
    paid = event("payment.processed", payment_id="p1")
    with TestDriver(builder) as driver:
        for one in (created, paid, paid, created):
            driver.send("orders", one)
        driver.run()
        found = driver.table("checkout.instances").get("o1")
        assert [entry["what"] for entry in found["history"]] == ["started", "done"]
