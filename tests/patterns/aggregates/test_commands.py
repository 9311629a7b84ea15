"""Commands of an aggregate: what follows from them, and what they are answered."""

from __future__ import annotations

import pytest
from cloudpickle import register_pickle_by_value

from patterns.aggregates import orders
from patterns.aggregates.orders import CreateOrder, Note, PayOrder, program, results, send
from potok.testing import TestDriver


@pytest.mark.parametrize("spread", [False, True])
def test_an_accepted_command_appends_its_events_and_changes_the_state_in_one_batch(spread: bool) -> None:
    with TestDriver(program(), spread=spread) as driver:
        send(driver, CreateOrder("o1", 10.0, ["book"]), command_id="c1", correlation="request-1")
        send(driver, PayOrder("o1"), command_id="c2")
        driver.run()
        first, second = results(driver)
        assert (first.status, first.version, first.command, first.aggregate_id) == ("accepted", 1, "CreateOrder", "o1")
        assert [(one["type"], one["sequence"], one["data"]["amount"]) for one in first.events] == [
            ("order.created", 1, 10.0)
        ]
        assert (second.status, second.version) == ("accepted", 2)
        created, paid = (record.value for record in driver.read("order-events"))
        named = "order.created", "0000000001", "/potok/shop/orders/o1"
        assert (created["type"], created["sequence"], created["source"]) == named
        assert (created["correlationid"], created["causationid"]) == ("request-1", "c1")
        assert (paid["type"], paid["sequence"], paid["correlationid"]) == ("order.paid", "0000000002", "c2")
        assert created["id"] == first.events[0]["id"]
        state = {"status": "paid", "amount": 10.0, "items": ["book"], "notes": []}
        assert driver.table("orders").get("o1") == {"version": 2, "state": state}
        assert driver.dead_letters() == []


def test_its_own_events_are_not_folded_twice() -> None:
    with TestDriver(program()) as driver:
        for number in range(3):
            send(driver, Note("o1", "n"), command_id=f"c{number}")
            driver.run()
        driver.restart()
        driver.run()
        assert driver.table("orders").get("o1")["state"]["notes"] == ["n0", "n1", "n2"]
        assert driver.table("orders").get("o1")["version"] == 3


def test_a_rejected_command_is_a_result_and_not_a_dead_letter() -> None:
    with TestDriver(program()) as driver:
        send(driver, PayOrder("o1"))
        driver.run()
        (result,) = results(driver)
        assert (result.status, result.reason) == ("rejected", "only a created order can be paid")
        assert (result.version, result.events) == (0, [])
        assert result.command_id == "orders-commands-0-0"
        assert driver.table("orders").all() == {}
        assert driver.read("order-events") == driver.dead_letters() == []


@pytest.mark.parametrize(
    ("expected", "missing", "existing"),
    [
        ("any", "accepted", "accepted"),
        ("none", "accepted", "wrong_version"),
        ("exists", "wrong_version", "accepted"),
        ("0", "accepted", "wrong_version"),
        ("1", "wrong_version", "accepted"),
        ("2", "wrong_version", "wrong_version"),
        ("-1", "invalid", "invalid"),
        ("newest", "invalid", "invalid"),
    ],
)
def test_the_expected_version_decides_whether_a_command_runs(expected: str, missing: str, existing: str) -> None:
    with TestDriver(program()) as driver:
        send(driver, Note("o2", "first"), "o2")
        for key in ("o1", "o2"):
            send(driver, Note(key, "second"), key, expected_version=expected)
        driver.run()
        assert results(driver)[0].status == missing
        assert results(driver, "o2")[1].status == existing


def test_the_version_decides_between_two_writers_of_one_batch() -> None:
    with TestDriver(program()) as driver:
        send(driver, Note("o1", "a"), command_id="a", expected_version=0)
        send(driver, Note("o1", "b"), command_id="b", expected_version=0)
        driver.run()
        first, second = results(driver)
        assert (first.status, second.status) == ("accepted", "wrong_version")
        assert second.reason == "the aggregate has version 1, not 0"


def test_a_repeated_command_id_returns_its_first_result() -> None:
    with TestDriver(program()) as driver:
        send(driver, PayOrder("o1"), command_id="pay")
        send(driver, CreateOrder("o1", 1.0), command_id="create")
        driver.run()
        driver.restart()
        send(driver, CreateOrder("o1", 2.0), command_id="create")
        send(driver, PayOrder("o1"), command_id="pay")
        driver.run()
        answers = driver.read("orders-results")
        assert answers[2].raw_value == answers[1].raw_value
        assert answers[3].raw_value == answers[0].raw_value
        assert ("repeated", b"true") in answers[2].headers
        assert driver.table("orders").get("o1")["state"]["amount"] == 1.0


def test_a_result_is_forgotten_after_its_time() -> None:
    with TestDriver(program(keep_results="10 s")) as driver:
        for at in (0, 10_000, 10_001, 20_001):
            send_at(driver, Note("o1", "n"), at)
        driver.run()
        assert [result.version for result in results(driver)] == [1, 1, 2, 2]


def send_at(driver: TestDriver, command: Note, at: int) -> None:
    value = {"command": "Note", "data": vars(command)}
    driver.send("orders-commands", value, "o1", headers={"command-id": b"same"}, timestamp=at)


def test_a_handler_that_raises_after_an_event_changes_nothing() -> None:
    with TestDriver(program()) as driver:
        send(driver, Note("o1", "boom", 2))
        send(driver, Note("o1", "fine", 2))
        driver.run()
        failed, fine = results(driver)
        assert (failed.status, failed.version, failed.error) == ("failed", 0, "ZeroDivisionError")
        assert failed.reason is not None and failed.reason.startswith("boom, at ") and "orders.py:" in failed.reason
        assert (fine.status, fine.version) == ("accepted", 2)
        assert driver.table("orders").get("o1")["state"]["notes"] == ["fine0", "fine1"]
        assert len(driver.read("order-events")) == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"no json", "the value is not a command"),
        (None, "the value is not a command"),
        ({"data": {}}, "the value is not a command"),
        ({"command": "Fly", "data": {}}, 'has no command "Fly"; it has CreateOrder, Note, PayOrder'),
        ({"command": "PayOrder"}, "missing required field `order_id`"),
        ({"command": "PayOrder", "data": {"order_id": 7}}, "Expected `str`, got `int` - at `$.order_id`"),
        ({"command": "PayOrder", "data": [1]}, "data of PayOrder: Expected `object`, got `array`"),
    ],
)
def test_a_command_that_is_none_is_answered_as_invalid(value: object, reason: str) -> None:
    with TestDriver(program()) as driver:
        driver.send("orders-commands", value, "o1", headers={"command-id": b"c"})
        driver.run()
        (result,) = results(driver)
        assert (result.status, result.command_id) == ("invalid", "c")
        assert result.reason is not None and reason in result.reason
        assert driver.dead_letters() == []


def test_a_command_without_a_key_is_a_dead_letter() -> None:
    with TestDriver(program()) as driver:
        driver.send("orders-commands", {"command": "PayOrder", "data": {"order_id": "o1"}})
        driver.run()
        (letter,) = driver.dead_letters()
        assert letter.topic == "orders-commands" and driver.read("orders-results") == []


def test_an_aggregate_runs_on_spark(spark: object) -> None:
    register_pickle_by_value(orders)  # Spark's workers cannot import tests
    with TestDriver(program(), spark=True) as driver:
        send(driver, CreateOrder("o1", 10.0))
        send(driver, PayOrder("o1"))
        driver.run()
        assert [result.status for result in results(driver)] == ["accepted", "accepted"]
        assert driver.table("orders").get("o1")["state"]["status"] == "paid"
