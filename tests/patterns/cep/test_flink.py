"""Matches are those that Flink CEP found for the same patterns and records."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.patterns import cep
from potok.patterns.cep import Pattern
from potok.testing import TestDriver

CASES = tomllib.loads(Path(__file__).with_name("flink.toml").read_text())["case"]
FAR = 1_000_000


def one_of(kinds: str) -> Callable[[Any], bool]:
    return lambda e: e["kind"] in kinds


def event(name: str, kinds: str) -> Pattern:
    return cep.event(name, one_of(kinds))


NAMES = {"group": cep.group, "one_of": one_of} | {f"v{n}": partial(event, f"v{n}") for n in [*range(10), "z"]}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['pattern']} {case['after']}" for case in CASES])
def test_matches_are_those_of_flink(case: dict[str, Any]) -> None:
    builder = StreamsBuilder("flink")
    pattern = eval(case["pattern"], dict(NAMES))
    builder.stream("in").group_by_key().match(pattern, after=case["after"], name="found").to("matches")
    with TestDriver(builder) as driver:
        for number, letter in enumerate(case["records"].split(), 1):
            driver.send("in", {"kind": letter, "number": number}, key="k", timestamp=number)
        driver.send("in", {"kind": "end", "number": 0}, key="other", timestamp=FAR)
        driver.run()
        assert sorted(rendered(record.value) for record in driver.read("matches")) == case["matches"]


def rendered(match: dict[str, list[dict[str, Any]]]) -> str:
    taken = [(one["number"], f"{name}:{one['kind']}{one['number']}") for name, found in match.items() for one in found]
    return " ".join(text for _, text in sorted(taken))
