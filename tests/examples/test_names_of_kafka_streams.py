"""`docs/coming-from/kafka-streams.md`: the methods that the page calls the same exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.generate.api import DSL

import potok
from potok.dsl.camel_case import ALIASES

PAGE = Path(__file__).parents[2] / "docs" / "coming-from" / "kafka-streams.md"
HANDLES = {cls.__name__: cls for cls in (*DSL, potok.ProcessorContext)}


def rows() -> list[tuple[str, list[str]]]:
    table = PAGE.read_text().partition("## All methods")[2].partition("\n## ")[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return [(row[1].strip("`"), re.findall(r"`(\w+)`", row[2])) for row in cells]


@pytest.mark.parametrize(("handle", "methods"), rows(), ids=lambda given: given if isinstance(given, str) else "")
def test_a_method_of_the_same_name_exists(handle: str, methods: list[str]) -> None:
    assert methods
    ours = {name: ALIASES.get(name, name) for name in methods}
    assert [name for name, spelling in ours.items() if not callable(getattr(HANDLES[handle], spelling, None))] == []
