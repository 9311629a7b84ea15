"""What the README shows is what runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from potok.testing import TestDriver

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_the_program_of_the_readme_is_the_example() -> None:
    rendered = blocks("python")[0].removeprefix("# orders.py\n").strip()
    example = (ROOT / "examples" / "orders.py").read_text()
    assert rendered in example


@pytest.mark.spark
def test_the_example_runs_and_its_table_can_be_read(spark: Any) -> None:
    spec = importlib.util.spec_from_file_location("orders_example", ROOT / "examples" / "orders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with TestDriver(module.builder) as driver:
        order = {"order_id": "o1", "user_id": "user_001", "amount": 120.5, "items": ["book"]}
        driver.send("orders", order)
        driver.run()
        assert driver.table("order_counts").get("user_001") == 1
        assert [record.value["status"] for record in driver.read("high-value-orders")] == ["HIGH_VALUE"]


def test_every_shell_command_of_the_readme_exists() -> None:
    from potok.cli.main import COMMANDS

    commands = {line.split()[1] for block in blocks("sh") for line in re.findall(r"potok \w+", block)}
    assert commands <= set(COMMANDS)
