"""Which agents run together, and what becomes of their rows when that changes."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import potok.app as faust
from potok.topology.nodes import Agents

from ..kernels.in_process import InProcess

Program = Callable[[faust.App, list[faust.Table]], tuple[Any, Any]]

SEEN: list[str] = []
PATTERN, LOG = re.compile("[a-z]*"), logging.getLogger("words")


class Teller:
    """An object of which nobody knows what it may lead to."""

    def tell(self) -> None: ...


TELLER = Teller()


def apart(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    first, second = tables

    async def counts(stream: Any) -> None:
        async for value in stream:
            first[value] += 1

    async def lengths(stream: Any) -> None:
        async for value in stream:
            second[value] += _length(value)

    return counts, lengths


def _length(value: str) -> int:
    LOG.debug("a word: %s", value)
    found = PATTERN.match(value)
    return 0 if found is None else len(found[0])


def one_table(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    first, second = tables

    async def counts(stream: Any) -> None:
        async for value in stream:
            first[value] += 1

    async def lengths(stream: Any) -> None:
        async for value in stream:
            second[value] = first[value] * len(value)

    return counts, lengths


def one_topic(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    first, second = tables
    out = app.topic("out")

    async def counts(stream: Any) -> None:
        async for value in stream:
            first[value] += 1
            await out.send(value="count")

    async def lengths(stream: Any) -> None:
        async for value in stream:
            second[value] += len(value)
            await out.send(value="length")

    return counts, lengths


def one_list(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    async def counts(stream: Any) -> None:
        async for value in stream:
            SEEN.append(value)

    async def lengths(stream: Any) -> None:
        async for _ in stream:
            SEEN.clear()

    return counts, lengths


def by_the_app(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    counts, _ = apart(app, tables)

    async def lengths(stream: Any) -> None:
        async for value in stream:
            app.tables["second"][value] += len(value)

    return counts, lengths


def by_a_name(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    counts, _ = apart(app, tables)

    async def lengths(stream: Any) -> None:
        async for value in stream:
            globals()[value] = 1

    return counts, lengths


def by_an_object(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    counts, _ = apart(app, tables)

    async def lengths(stream: Any) -> None:
        async for _ in stream:
            TELLER.tell()

    return counts, lengths


def by_an_import(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    counts, _ = apart(app, tables)

    async def lengths(stream: Any) -> None:
        async for _ in stream:
            from .shop import shop

            shop()

    return counts, lengths


def app_of(program: Program, *, spread: bool = False) -> faust.App:
    app = faust.App("words")
    words = app.topic("words", value_type=str)
    tables = [app.Table(name, default=int) for name in ("first", "second")]
    key = {"key": lambda value: value} if spread else {}
    for function in program(app, tables):
        app.agent(words, name=function.__name__, **key)(function)
    return app


def crews(app: faust.App) -> dict[str, int]:
    """Each agent, and the number of its crew."""
    return {part.name: node.crew.home for node in app.build().of_type(Agents) for part in node.crew.agents}


def test_agents_that_share_nothing_run_beside_each_other() -> None:
    assert crews(app_of(apart)) == {"counts": 0, "lengths": 1}


def one_table_far_away(app: faust.App, tables: list[faust.Table]) -> tuple[Any, Any]:
    first, _ = tables
    counts, _ = apart(app, tables)

    async def lengths(stream: Any, far: Any = partial(lambda given: given, [{"a": deque([(first,)])}])) -> None:
        async for value in stream:
            far()[0]["a"][0][0][value] += 1

    return counts, lengths


@pytest.mark.parametrize("program", [one_table, one_topic, one_list, one_table_far_away])
def test_agents_that_share_something_run_together(program: Program) -> None:
    assert crews(app_of(program)) == {"counts": 0, "lengths": 0}


@pytest.mark.parametrize("program", [by_the_app, by_a_name, by_an_object, by_an_import])
def test_an_agent_that_may_reach_anything_keeps_all_together(program: Program) -> None:
    app = app_of(program)
    assert crews(app) == {"counts": 0, "lengths": 0}
    assert "the code of lengths does not tell all that it uses" in app.build().of_type(Agents)[0].detail


WORDS = ["a", "bb", "a", "ccc", "dddd", "bb", "a"]
COUNTS = {"a": 3, "bb": 2, "ccc": 1, "dddd": 1}


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("before", [(apart, False), (one_table, False), (apart, True)])
@pytest.mark.parametrize("after", [(apart, False), (one_table, False), (apart, True)])
def test_rows_are_found_by_the_next_version_whatever_its_crews(
    before: tuple[Program, bool], after: tuple[Program, bool], shards: int, tmp_path: Path
) -> None:
    with InProcess(app_of(before[0], spread=before[1]), directory=tmp_path, shards=shards) as driver:
        for word in WORDS:
            driver.send("words", word.encode())
        driver.run()
        assert driver.table("first").all() == COUNTS
        driver.replace(app_of(after[0], spread=after[1]))
        assert driver.table("first").all() == COUNTS
        for word in WORDS:
            driver.send("words", word.encode())
        driver.run()
        assert driver.table("first").all() == {word: 2 * count for word, count in COUNTS.items()}
        assert all(driver.table("first").get(word) == 2 * count for word, count in COUNTS.items())
        assert driver.dead_letters() == []


def test_a_record_that_does_not_fit_is_one_dead_letter_however_many_crews_take_it() -> None:
    class Order(faust.Record):
        amount: float

    app = faust.App("orders")
    orders = app.topic("orders", value_type=Order)
    first, second = (app.Table(name, default=float) for name in ("first", "second"))

    @app.agent(orders)
    async def sums(stream: Any) -> None:
        async for order in stream:
            first["all"] += order.amount

    @app.agent(orders)
    async def largest(stream: Any) -> None:
        async for order in stream:
            second["all"] = max(second["all"], order.amount)

    assert crews(app) == {"sums": 0, "largest": 1}
    with InProcess(app, shards=2) as driver:
        for amount in ("1", "3", '"much"', "2"):
            driver.send("orders", f'{{"amount": {amount}}}'.encode())
        driver.run()
        assert (driver.table("first").all(), driver.table("second").all()) == ({"all": 6.0}, {"all": 3.0})
        assert driver.reasons() == [("orders", "decode")]
