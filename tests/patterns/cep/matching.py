"""Run a pattern over the records of one key."""

from __future__ import annotations

from typing import Any, NamedTuple

from potok import StreamsBuilder
from potok.patterns import cep
from potok.patterns.cep import Pattern
from potok.testing import TestDriver


def kind(names: str, *, variable: str = "") -> Pattern:
    """An event of one of these kinds, each a letter."""
    return cep.event(variable or names, lambda e: e["kind"] in names)


class Matched(NamedTuple):
    matches: list[str]
    timeouts: list[str]
    dead_letters: list[str]


def matched(pattern: Pattern, text: str, **options: Any) -> Matched:
    """Match `a c b@9`: kinds of records, whose time is their number or behind the `@`. A match is shown as `a1 b9`."""
    builder = StreamsBuilder("cep")
    found = builder.stream("in").group_by_key().match(pattern, name="found", **options)
    found.to("matches")
    if pattern.ends_in_time:
        found.timeouts.to("timeouts")
    with TestDriver(builder) as driver:
        for number, word in enumerate(text.split(), 1):
            letter, _, at = word.partition("@")
            time = int(at or number)
            driver.send("in", {"kind": letter, "at": time}, key="k", timestamp=time)
        driver.send("in", {"kind": "end", "at": 0}, key="other", timestamp=1_000_000)
        driver.run()
        return Matched(
            [_rendered(record.value) for record in driver.read("matches")],
            [_rendered(record.value) for record in driver.read("timeouts")] if pattern.ends_in_time else [],
            [letter.error for letter in driver.dead_letters()],
        )


def matches(pattern: Pattern, text: str, **options: Any) -> list[str]:
    found = matched(pattern, text, **options)
    assert not found.dead_letters
    return found.matches


def _rendered(value: dict[str, list[dict[str, Any]]]) -> str:
    taken = sorted((record["at"], record["kind"]) for records in value.values() for record in records)
    return " ".join(f"{letter}{at}" for at, letter in taken)
