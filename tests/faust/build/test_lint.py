"""Variables that an agent changes, and that no other process sees, are reported by name."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

import potok.faust as faust
from potok.faust.build.lint import lost_changes

COUNT = 0
SEEN: list[int] = []
LAST: dict[str, int] = {}
TALLY: Counter[str] = Counter()
NAMES = {"a": "ann"}


async def counts(stream: Any) -> None:
    global COUNT
    async for _ in stream:
        COUNT += 1


async def appends(stream: Any) -> None:
    async for value in stream:
        SEEN.append(value)


async def stores(stream: Any) -> None:
    async for value in stream:
        LAST[value] = TALLY[value]
        TALLY[value] += 1


async def deletes(stream: Any) -> None:
    async for value in stream:
        del LAST[value]


def _note(value: int) -> None:
    SEEN.append(value)


async def calls(stream: Any) -> None:
    async for value in stream:
        _note(value)


async def bound(prefix: str, stream: Any) -> None:
    async for value in stream:
        LAST[prefix + value] = 1


async def looks(stream: Any) -> None:
    own: list[Any] = []
    async for value in stream:
        own.append(NAMES.get(value))
        own[0] = SEEN[0] + COUNT


async def hides(stream: Any) -> None:
    SEEN = []
    async for value in stream:
        SEEN.append(value)


def _reported(function: Any, **options: Any) -> list[str]:
    app = faust.App("app")
    return lost_changes(app.agent("topic", name="work", **options)(function))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (counts, ["COUNT"]),
        (appends, ["SEEN"]),
        (stores, ["LAST", "TALLY"]),
        (deletes, ["LAST"]),
        (calls, ["SEEN"]),
        (partial(bound, "x"), ["LAST"]),
        (looks, []),
        (hides, []),
    ],
)
def test_changes_outside_of_agents_are_reported(function: Any, names: list[str]) -> None:
    reported = _reported(function)
    assert sorted(text.split('"')[3] for text in reported) == names
    assert all(text.startswith('agent "work"') and "store state in tables" in text for text in reported)


def test_sinks_and_error_handlers_count_as_definitions() -> None:
    async def on_error(agent: Any, error: Any) -> None:
        LAST["error"] = 1

    assert len(_reported(looks, sink=[_note], on_error=on_error)) == 2


def test_tables_are_not_variables() -> None:
    app = faust.App("app")
    table = app.Table("table", default=int)

    @app.agent("topic")
    async def work(stream: Any) -> None:
        async for value in stream:
            table[value] += 1
            table.pop(value)

    assert lost_changes(work) == []
