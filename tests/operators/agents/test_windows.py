"""Windows of agents that are over or overlap, and what is done at their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess

MINUTE = 60_000


class Paid(faust.Record):
    user: str
    amount: int


class Stats(faust.Record):
    total: int
    seen: list  # type: ignore[type-arg]

    def add(self, amount: int) -> int:
        self.total += amount
        return self.total


class Run:
    """An app with payments of "u", and the table "w" with windows that tell at their end what they were."""

    def __init__(self, default: Callable[[], Any], *, on_close: Any = None) -> None:
        self.app = faust.App("app")
        self.payments = self.app.topic("payments", value_type=Paid)
        self.out = self.app.topic("out")

        async def closed(window: Any, value: Any) -> None:
            await self.out.send(value=[window[1][0], getattr(value, "total", value)])

        self.table = self.app.Table("w", default=default, on_window_close=on_close or closed)

    def go(self, *given: tuple[float, int], batch: int | None = 1) -> InProcess:
        """Payments, given as (minute, amount)."""
        driver = InProcess(self.app)
        driver.__enter__()
        for minute, amount in given:
            driver.send("payments", {"user": "u", "amount": amount}, timestamp=round(minute * MINUTE))
        driver.run(batch, more_to_come=True)
        return driver

    def hopping(self, work: Callable[[Any, Any], Any], concurrency: int = 1) -> tuple[dict[int, Any], list[str]]:
        """What windows of two minutes hold that begin each minute, and why payments became dead letters."""
        windows = self.table.hopping(120, 60, expires=6000)

        @self.app.agent(self.payments, concurrency=concurrency)
        async def count(stream: Any) -> None:
            async for paid in stream:
                work(windows, paid)
                if concurrency > 1:
                    await asyncio.sleep(0)

        driver = self.go((1.5, 1), (2.5, 2), (2.6, 3), batch=None)
        found = {key.start_ms // MINUTE: value for key, value in driver.table("w").all().items()}
        return found, [letter.error.partition(":")[0] for letter in driver.dead_letters()]


def append(windows: Any, paid: Any) -> None:
    windows["u"].append(paid.amount)


def append_to_value(windows: Any, paid: Any) -> None:
    windows["u"].value().append(paid.amount)


def add(windows: Any, paid: Any) -> None:
    windows["u"].total += paid.amount


@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize(("work", "default"), [(append, list), (append_to_value, list), (add, lambda: Stats(0, []))])
def test_a_change_in_place_in_a_window_that_is_over_is_a_dead_letter(work: Any, default: Any, batch: Any) -> None:
    run = Run(default)
    windows = run.table.tumbling(60, expires=60)

    @run.app.agent(run.payments)
    async def count(stream: Any) -> None:
        async for paid in stream:
            work(windows, paid)

    driver = run.go((0, 1), (10, 2), (0.5, 3), (10, 4), (20, 5), batch=batch)
    driver.send("payments", {"user": "u", "amount": 6}, timestamp=20 * MINUTE)
    driver.run(more_to_come=True)
    reported = [[1], [2, 4]] if default is list else [1, 6]
    assert [record.value for record in driver.read("out")] == [[0.0, reported[0]], [600.0, reported[1]]]
    assert [letter.error.partition(":")[0] for letter in driver.dead_letters()] == ["LateForWindow"]


def test_to_look_at_a_window_that_is_over_finds_nothing_and_makes_none() -> None:
    run = Run(lambda: Stats(0, []))
    windows, seen = run.table.tumbling(60, expires=60), run.app.topic("seen")

    @run.app.agent(run.payments)
    async def count(stream: Any) -> None:
        async for paid in stream:
            await seen.send(value=[windows["u"].delta(600).total, windows["u"].total, "u" in windows])
            if paid.amount:
                windows["u"].total += paid.amount

    driver = run.go((20, 1), (20, 2), (21, 0), (0, 0), (30, 5))
    assert [record.value[1:] for record in driver.read("seen")] == [[0, False], [1, True], *[[0, False]] * 3]
    assert [record.value[0] for record in driver.read("seen")] == [0] * 5
    assert [record.value for record in driver.read("out")] == [[1200.0, 3]]
    assert driver.dead_letters() == []


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize(
    "work",
    [
        append,
        lambda windows, paid: windows["u"].each_window(lambda value: value.append(paid.amount)),
        lambda windows, paid: windows.__setitem__("u", windows["u"].__iadd__([paid.amount])),
        lambda windows, paid: len(windows["u"].value()) < 9 and windows["u"].append(paid.amount),
    ],
)
def test_a_change_of_overlapping_windows_is_made_in_each_by_itself(work: Any, concurrency: int) -> None:
    assert Run(list).hopping(work, concurrency) == ({0: [1], 1: [1, 2, 3], 2: [2, 3]}, [])


def test_a_method_of_a_record_is_called_for_each_window_and_returns_what_the_newest_did() -> None:
    def work(windows: Any, paid: Any) -> None:
        assert windows["u"].add(1) == (1 if paid.amount < 3 else 2)

    found, letters = Run(lambda: Stats(0, [])).hopping(work)
    assert {start: value["total"] for start, value in found.items()} == {0: 1, 1: 3, 2: 2}
    assert letters == []


def put_back(windows: Any, paid: Any) -> None:
    value = windows["u"].value()
    value.seen.append(1)
    windows["u"] = value


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize(
    "work",
    [
        add,
        put_back,
        lambda windows, paid: windows["u"].seen.append(1),
        lambda windows, paid: windows["u"].value().seen.append(1),
    ],
)
def test_a_change_of_one_of_several_windows_is_refused(work: Any, concurrency: int) -> None:
    assert Run(lambda: Stats(0, [])).hopping(work, concurrency) == ({}, ["OneOfSeveralWindows"] * 3)


def test_a_value_that_is_set_is_that_of_all_windows_of_the_record() -> None:
    found, letters = Run(int).hopping(lambda windows, paid: windows.__setitem__("u", paid.amount))
    assert (found, letters) == ({0: 1, 1: 3, 2: 3}, [])


def test_a_window_set_is_its_value_in_conditions_and_arithmetic() -> None:
    run = Run(int)
    out = run.out
    numbers, names = run.table.tumbling(60, expires=60), run.app.Table("names", default=dict).tumbling(60)

    @run.app.agent(run.payments)
    async def count(stream: Any) -> None:
        async for _ in stream:
            n, name = numbers["u"], names["u"]
            await out.send(value=[bool(n), n + 1, 1 - n, n > 0, f"{n}", bool(name), "a" in name, len(name), list(name)])
            numbers["u"] += 3
            numbers["u"] //= 2
            names["u"]["a"] = 1

    driver = run.go((0, 1), (0, 1))
    first, second = (record.value for record in driver.read("out"))
    assert first == [False, 1, 1, False, "0", False, False, 0, []]
    assert second == [True, 2, 0, True, "1", True, True, 1, ["a"]]
    assert driver.dead_letters() == []


def test_the_table_itself_cannot_be_asked_without_a_window() -> None:
    run = Run(int)
    run.table.tumbling(60, expires=60)

    @run.app.agent(run.payments)
    async def count(stream: Any) -> None:
        async for paid in stream:
            run.table[paid.user] += 1

    assert ["WithoutWindow" in letter.error for letter in run.go((0, 1)).dead_letters()] == [True]


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("lists", [False, True])
def test_what_the_end_of_a_window_puts_into_a_channel_is_taken_or_fails_with_that_window(
    lists: bool, concurrency: int
) -> None:
    async def closed(window: Any, value: int) -> None:
        await channel.put(value)

    run = Run(int, on_close=closed)
    channel, kept = run.app.channel(), run.app.Table("kept", default=int)
    windows = run.table.tumbling(60, expires=0)

    @run.app.agent(run.payments)
    async def count(stream: Any) -> None:
        async for paid in stream:
            windows["u"] += paid.amount

    @run.app.agent(channel, concurrency=concurrency)
    async def keep(stream: Any) -> None:
        async for taken in stream.take(10, 1) if lists else stream:
            for value in taken if lists else [taken]:
                kept["all"] += value
                if value == 7:
                    raise ValueError("seven")

    driver = run.go((0, 1), (10, 7), (20, 3), (30, 5))
    assert driver.table("kept").all() == {"all": 4}
    assert [letter.value for letter in driver.dead_letters()] == [b'{"start":600000,"end":660000,"value":7}']


def test_what_the_end_of_a_window_uses_is_used_by_its_agents() -> None:
    async def closed(window: Any, value: int) -> None:
        totals[window[0]] += value
        await again.send(value=value)

    run = Run(int, on_close=closed)
    totals, again, out = run.app.Table("totals", default=int), run.app.topic("again"), run.out
    windows = run.table.tumbling(60, expires=0)

    @run.app.agent(run.payments, key=Paid.user)
    async def count(stream: Any) -> None:
        async for paid in stream:
            windows[paid.user] += paid.amount

    @run.app.agent(again)
    async def take(stream: Any) -> None:
        async for value in stream:
            await out.send(value=value)

    driver = run.go((0, 1), (10, 2), (20, 3))
    driver.run()
    assert [record.value for record in driver.read("out")] == [1, 2]
    assert (driver.table("totals").get("u"), driver.dead_letters()) == (3, [])


def test_who_waits_too_long_at_the_end_of_a_window_makes_a_dead_letter() -> None:
    async def closed(window: Any, value: int) -> None:
        await asyncio.Event().wait()

    run = Run(int, on_close=closed)
    windows = run.table.tumbling(60, expires=0)

    @run.app.agent(run.payments, timeout=0.01)
    async def count(stream: Any) -> None:
        async for paid in stream:
            windows[paid.user] += paid.amount

    driver = run.go((0, 1), (10, 2), (10, 2))
    assert ["TimeoutError" in letter.error for letter in driver.dead_letters()] == [True]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_effects_of_error_handlers_are_kept_and_those_of_the_failed_record_undone(concurrency: int) -> None:
    app = faust.App("app")
    topic, channel, seen = app.topic("numbers"), app.channel(), app.Table("seen", default=int)

    async def reported(agent: str, error: BaseException) -> None:
        seen["errors"] += 1
        await channel.put(100)

    @app.agent(topic, concurrency=concurrency, on_error=reported)
    async def put(stream: Any) -> None:
        async for number in stream:
            seen["started"] += 1
            await channel.put(number)
            if number == 2:
                raise ValueError
            await asyncio.sleep(0)

    @app.agent(channel)
    async def add_up(stream: Any) -> None:
        async for number in stream:
            seen["sum"] += number

    with InProcess(app) as driver:
        for number in (0, 1, 2):
            driver.send("numbers", number)
        driver.run()
        assert driver.table("seen").all() == {"started": 2, "errors": 1, "sum": 101}


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("taker_first", [False, True])
def test_channel_values_can_be_taken_in_lists_in_any_definition_order(taker_first: bool, concurrency: int) -> None:
    app = faust.App("app")
    topic, channel, lists = app.topic("numbers"), app.channel(), app.Table("lists", default=list)

    async def put(stream: Any) -> None:
        async for numbers in stream.take(10, 1):
            await asyncio.sleep(0)
            await channel.put(sum(numbers))

    async def take(stream: Any) -> None:
        async for sums in stream.take(10, 1):
            lists["all"].extend(sums)

    agents = [lambda: app.agent(topic, concurrency=concurrency)(put), lambda: app.agent(channel)(take)]
    for define in reversed(agents) if taker_first else agents:
        define()
    with InProcess(app) as driver:
        for number in (1, 2, 3):
            driver.send("numbers", number)
        driver.run()
        assert sum(driver.table("lists").get("all")) == 6


def test_an_error_of_an_error_handler_is_logged_and_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    app = faust.App("app")
    topic, seen = app.topic("numbers"), app.Table("seen", default=int)

    def reported(agent: str, error: BaseException) -> None:
        seen["errors"] += 1
        raise KeyError("nobody")

    @app.agent(topic, on_error=reported)
    async def fail(stream: Any) -> None:
        async for _ in stream:
            raise ValueError

    with InProcess(app) as driver, caplog.at_level(logging.ERROR, "potok.faust"):
        driver.send("numbers", 1)
        driver.run()
        assert driver.table("seen").all() == {}
    assert 'on_error of agent "fail" has failed: KeyError' in caplog.text
