"""The use cases of `examples/` print what their pages say, whatever the batches."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from potok.testing import TestDriver

EXAMPLES = Path(__file__).parents[2] / "examples"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["anti_fraud", "dynamic_pricing"])
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
