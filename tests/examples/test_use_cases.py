"""The use cases of `examples/` print what their pages say, whatever the batches."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser

from potok.patterns.aggregates.messages import command_record
from potok.testing import TestDriver

EXAMPLES = Path(__file__).parents[2] / "examples"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["anti_fraud", "checkout", "dynamic_pricing"])
def test_a_use_case_prints_what_its_page_says(spark: Any, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program(name).main()
    page = (EXAMPLES / name / "README.md").read_text()
    assert capsys.readouterr().out == page.partition("```text\n")[2].partition("```")[0]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_card_is_blocked_by_the_most_severe_of_its_decisions(size: int) -> None:
    app = program("anti_fraud")
    payments = [
        *[("card-1", second, 1.0, "NL") for second in (0, 10, 20)],
        ("card-1", 30, 500.0, "NL"),
        ("card-1", 90, 20.0, "BR"),
        ("card-2", 100, 20.0, "NL"),
        ("card-2", 2_000, 20.0, "BR"),
    ]
    with TestDriver(app.builder) as driver:
        for number, (card, second, amount, country) in enumerate(payments):
            value = {"payment_id": f"p{number}", "amount": amount, "country": country}
            driver.send("payments", value, key=card, timestamp=second * 1_000)
            if number % size == 0:
                driver.run(more_to_come=True)
        driver.run()
        rules = [(record.key, record.value["rule"]) for record in driver.read("decisions")]
        assert sorted(rules) == [("card-1", "card testing"), ("card-1", "impossible travel")]
        assert {card: row["decision"] for card, row in driver.table("cards").all().items()} == {"card-1": "block"}
        assert driver.dead_letters() == []


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_price_follows_the_requests_of_the_last_minute(size: int) -> None:
    app = program("dynamic_pricing")
    with TestDriver(app.builder) as driver:
        driver.send("free-drivers", {"free": 2}, key="centre", timestamp=0)
        driver.run(more_to_come=True)
        for number, second in enumerate((1, 2, 3, 4, 5, 70, 71, 200)):
            driver.send("ride-requests", {"rider": "ann"}, key="centre", timestamp=second * 1_000)
            if number % size == 0:
                driver.run(more_to_come=True)
        driver.run()
        assert driver.table("prices").all() == {"centre": {"multiplier": 1.0, "requests": 2, "free": 2}}


@pytest.mark.parametrize("size", [1, 100])
def test_an_order_is_paid_and_reserved_or_cancelled_and_paid_back(size: int, tmp_path: Path) -> None:
    app = program("checkout")
    wanted = [
        ("o1", "ann", "lamp", 2, "completed"),
        ("o2", "ann", "table", 2, "cancelled"),
        ("o3", "bob", "lamp", 2, "cancelled"),
        ("o4", "bob", "lamp", 1, "completed"),
    ]
    with ExitStack() as stack:
        drivers = [stack.enter_context(TestDriver(query, directory=tmp_path)) for query in app.QUERIES]

        def send(order_id: str, command: object) -> None:
            record = command_record(order_id, type(command).__name__, vars(command))
            drivers[0].send("orders-commands", record.value, order_id)

        def settle() -> None:
            while sum(driver.run(size, more_to_come=True) for driver in drivers):
                pass

        for order_id, customer, item, quantity, _ in wanted:
            send(order_id, app.PlaceOrder(order_id, customer, item, quantity))
            settle()
        send("o1", app.RateOrder("o1", 5))
        send("o2", app.RateOrder("o2", 5))
        settle()
        customers = drivers[2].table("customers").all()
        found = {order: row for customer in customers.values() for order, row in customer["orders"].items()}
        assert {order: row["status"] for order, row in found.items()} == {order: end for order, *_, end in wanted}
        assert (customers["ann"]["spent"], customers["bob"]["spent"]) == (80.0, 40.0)
        assert (found["o1"]["stars"], "stars" in found["o2"]) == (5, False)
        commands = [
            (record.value["type"], record.value["data"]["order_id"]) for record in drivers[2].read("service-commands")
        ]
        assert [order for kind, order in commands if kind == "payment.refund"] == ["o3"]
        assert [order for kind, order in commands if kind == "payment.process"] == ["o1", "o2", "o3", "o4"]
        assert [letter for driver in drivers for letter in driver.dead_letters()] == []


@pytest.mark.browser
def test_the_page_of_the_shop_reads_its_own_writes(spark: Any, browser: Browser, tmp_path: Path) -> None:
    app = program("checkout")
    with app.running(str(tmp_path), 0) as url, browser.new_page() as page:
        page.set_default_timeout(60_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        page.select_option("select[name=item]", "table")
        page.click("text=Place order")
        page.locator("tbody tr .completed").wait_for()
        page.click("text=rate")
        page.locator("#message:has-text('RateOrder: version')").wait_for()
        page.locator("tbody tr:has-text('★★★★★')").wait_for()
        page.fill("input[name=quantity]", "2")
        page.click("text=Place order")
        page.locator("tbody tr .cancelled").wait_for()
        assert errors == []
