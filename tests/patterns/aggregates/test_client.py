"""Commands that a Python program sends, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import potok
from patterns.aggregates.orders import CreateOrder, Note, Order, OrderPaid, PayOrder, program
from potok.errors import QueryError
from potok.testing import TestDriver, given


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[TestDriver]:
    with TestDriver(program(), directory=tmp_path) as found:
        yield found


def test_a_command_has_a_result_once_it_is_decided(driver: TestDriver) -> None:
    orders = driver.aggregate(Order)
    sent = orders.send("o1", CreateOrder("o1", 5.0, ["book"]), expected_version="none")
    assert orders.result(sent, timeout=0) is None
    driver.run()
    result = orders.result(sent)
    assert result is not None and (result.status, result.version, result.command_id) == ("accepted", 1, sent.command_id)
    assert orders.get("o1") == Order("created", 5.0, ["book"])
    late = orders.send("o1", PayOrder("o1"), expected_version=7)
    driver.run()
    found = orders.result(late)
    assert found is not None and (found.status, found.reason) == ("wrong_version", "the aggregate has version 1, not 7")


def test_a_command_that_is_sent_twice_runs_once(driver: TestDriver) -> None:
    with potok.open_aggregate(driver.broker.directory, Order, "shop") as orders:
        sent = [orders.send("o1", Note("o1", "n"), command_id="k1") for _ in range(2)]
        driver.run()
        first, second = (orders.result(one) for one in sent)
        assert first is not None and first == second
        assert orders.version("o1") == 1


def test_correlation_is_that_of_the_caller(driver: TestDriver) -> None:
    driver.aggregate(Order).send("o1", CreateOrder("o1", 5.0), command_id="k1", correlation="req_1")
    driver.run()
    (event,) = driver.read("order-events")
    assert (event.value["correlationid"], event.value["causationid"]) == ("req_1", "k1")


def test_what_is_not_a_command_of_the_aggregate_is_refused_before_it_is_sent(driver: TestDriver) -> None:
    orders = driver.aggregate(Order)
    with pytest.raises(QueryError, match='is not a command of aggregate "orders"') as found:
        orders.send("o1", OrderPaid("o1"))
    assert "CreateOrder" in found.value.hint
    with pytest.raises(QueryError, match='"soon" is not an expected version; write any, none, exists, or a number'):
        orders.send("o1", PayOrder("o1"), expected_version="soon")  # type: ignore[arg-type]
    assert driver.broker.end_offsets("orders-commands") == {0: 0}


def test_commands_hold_whatever_json_can_say() -> None:
    @dataclass
    class Charge:
        amount: Decimal
        at: datetime
        code: bytes

    @potok.event("charged")
    @dataclass
    class Charged:
        amount: Decimal
        at: datetime
        code: bytes

    @potok.aggregate("bills", events="bill-events")
    class Bill:
        total: Decimal = Decimal(0)

        @potok.command
        def charge(self, command: Charge) -> Charged:
            return Charged(command.amount, command.at, command.code)

        @potok.applies
        def charged(self, event: Charged) -> None:
            self.total += event.amount

    given_ = Decimal("12.50"), datetime(2024, 1, 15, tzinfo=UTC), b"\xff"
    given(Bill).when(Charge(*given_)).then(Charged(*given_), state=Bill(Decimal("12.50")))
