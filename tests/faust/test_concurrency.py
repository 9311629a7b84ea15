"""Agents that have several records at once: order by key, and writes as if they came one after the other."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.errors import TopologyError


class Outside:
    """External services that answer in a given order, without a clock.

    An agent that travels takes a copy of it along, so what it was asked is a matter of the class.
    """

    asked: ClassVar[list[int]] = []
    most: ClassVar[int] = 0

    def __init__(self, order: list[int]) -> None:
        self._order, self._now = list(order), 0
        Outside.asked, Outside.most = [], 0
        self._waiting: dict[int, asyncio.Future[int]] = {}

    async def ask(self, number: int) -> int:
        self.asked.append(number)
        self._now += 1
        Outside.most = max(self.most, self._now)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(self._answer)
        try:
            return await waiting
        finally:
            self._now -= 1

    def _answer(self) -> None:
        """Answer who is next in the order, as soon as all before have been answered."""
        while self._order and self._order[0] in self._waiting:
            number = self._order.pop(0)
            self._waiting.pop(number).set_result(number * 10)


def made(outside: Outside, concurrency: int, **options: Any) -> faust.App:
    app = faust.App("app")
    topic, out = app.topic("numbers", key_type=str), app.topic("out")
    trail, sums = app.Table("trail", default=list), app.Table("sums", default=int)

    @app.agent(topic, concurrency=concurrency, sends=[out], tables=[trail, sums], **options)
    async def work(stream: Any) -> None:
        async for key, number in stream.items():
            answer = await outside.ask(number)
            trail[key].append(number)
            sums["all"] += answer
            await out.send(key=key, value=[number, faust.current_event().value, answer])

    return app


def test_records_of_several_keys_wait_at_once_and_what_they_send_keeps_their_order() -> None:
    outside = Outside([3, 1, 2, 4])
    with InProcess(made(outside, 3)) as driver:
        for number in (1, 2, 3, 4):
            driver.send("numbers", number, key=f"k{number}")
        driver.run()
        assert [record.value for record in driver.read("out")] == [[n, n, n * 10] for n in (1, 2, 3, 4)]
        assert driver.table("sums").get("all") == 100
        assert driver.dead_letters() == []
    assert outside.asked == [1, 2, 3, 4]
    assert outside.most == 3


def test_records_of_one_key_keep_their_order() -> None:
    outside = Outside([3, 1, 2])
    with InProcess(made(outside, 3)) as driver:
        for number, key in ((1, "a"), (2, "a"), (3, "b")):
            driver.send("numbers", number, key=key)
        driver.run()
        assert driver.table("trail").all() == {"a": [1, 2], "b": [3]}
    assert outside.asked == [1, 3, 2]


def test_a_record_that_had_looked_at_what_another_changed_is_given_again() -> None:
    outside = Outside([2, 1, 1])
    app = faust.App("app")
    topic, sums = app.topic("numbers", key_type=str), app.Table("sums", default=int)

    @app.agent(topic, concurrency=2, tables=[sums])
    async def work(stream: Any) -> None:
        async for number in stream:
            before = sums["all"]
            answer = await outside.ask(number)
            sums["all"] = before + answer

    with InProcess(app) as driver:
        driver.send("numbers", 1, key="a")
        driver.send("numbers", 2, key="b")
        driver.run()
        assert driver.table("sums").get("all") == 30
    assert outside.asked == [1, 2, 1]


def test_changes_of_a_record_are_invisible_until_it_is_done_and_undone_if_it_raises() -> None:
    outside = Outside([2, 3, 1])
    app = faust.App("app")
    topic, kept, out = app.topic("numbers", key_type=str), app.Table("kept", default=list), app.topic("out")

    @app.agent(topic, concurrency=3, tables=[kept], sends=[out])
    async def work(stream: Any) -> None:
        async for key, number in stream.items():
            kept[key].append(number)
            await out.send(value=number)
            await outside.ask(number)
            await out.send(value=[name for name, numbers in kept.items() if numbers and name != key])
            if number == 1:
                raise ValueError(number)

    with InProcess(app) as driver:
        for number in (1, 2, 3):
            driver.send("numbers", number, key=f"k{number}")
        driver.run()
        assert driver.table("kept").all() == {"k2": [2], "k3": [3]}
        assert [record.value for record in driver.read("out")] == [2, [], 3, ["k2"]]
        assert driver.reasons() == [("work", "error")]


def test_other_agents_process_records_in_order_meanwhile() -> None:
    outside = Outside([2, 1])
    app = faust.App("app")
    topic, sums = app.topic("numbers", key_type=str), app.Table("sums", default=int)
    answers = app.channel()

    @app.agent(topic, concurrency=2, tables=[sums])
    async def work(stream: Any) -> None:
        async for number in stream:
            await answers.put(await outside.ask(number))

    @app.agent(topic)
    async def count(stream: Any) -> None:
        async for _ in stream:
            before = sums["records"]
            await asyncio.sleep(0)
            sums["records"] = before + 1

    @app.agent(answers)
    async def add(stream: Any) -> None:
        async for answer in stream:
            before = sums["answers"]
            await asyncio.sleep(0)
            sums["answers"] = before + answer

    with InProcess(app) as driver:
        driver.send("numbers", 1, key="a")
        driver.send("numbers", 2, key="b")
        driver.run()
        assert driver.table("sums").all() == {"answers": 30, "records": 2}


def test_a_record_that_times_out_is_a_dead_letter_and_the_others_are_processed() -> None:
    outside = Outside([1, 3])
    with InProcess(made(outside, 3, timeout=0.05)) as driver:
        for number in (1, 2, 3):
            driver.send("numbers", number, key=f"k{number}")
        driver.run()
        assert driver.table("sums").get("all") == 40
        assert [letter.error.partition(":")[0].partition(",")[0] for letter in driver.dead_letters()] == [
            "TimeoutError"
        ]


def test_lists_fill_up_before_a_caller_waits() -> None:
    outside = Outside([3, 1, 5])
    app = faust.App("app")
    topic, kept = app.topic("numbers", key_type=str), app.Table("kept", default=list)

    @app.agent(topic, concurrency=2, tables=[kept])
    async def work(stream: Any) -> None:
        async for numbers in stream.take(2, within=1):
            await outside.ask(numbers[0])
            kept["all"].append(numbers)

    with InProcess(app) as driver:
        for number in (1, 2, 3, 4, 5):
            driver.send("numbers", number, key=f"k{number}")
        driver.run()
        assert driver.dead_letters() == []
        assert driver.table("kept").get("all") == [[3, 4], [1, 2], [5]]


def test_a_background_task_of_an_agent_may_not_use_tables() -> None:
    app = faust.App("app")
    topic, kept = app.topic("numbers"), app.Table("kept", default=list)

    @app.agent(topic, concurrency=2, tables=[kept])
    async def work(stream: Any) -> None:
        async def other() -> None:
            await asyncio.sleep(0)
            kept["all"].append(1)

        async for _ in stream:
            await asyncio.gather(other())

    with InProcess(app) as driver:
        driver.send("numbers", 1)
        driver.run()
        assert "only in its own code" in driver.dead_letters()[0].error


def test_windows_are_counted_as_if_one_record_came_after_the_other() -> None:
    outside = Outside([2, 1, 1])
    app = faust.App("app")
    topic = app.topic("numbers", key_type=str)
    minutes = app.Table("minutes", default=int).tumbling(60)

    @app.agent(topic, concurrency=2, tables=[minutes])
    async def work(stream: Any) -> None:
        async for number in stream:
            before = minutes["all"].value()
            minutes["all"] = before + await outside.ask(number)

    with InProcess(app) as driver:
        driver.send("numbers", 1, key="a", timestamp=1000)
        driver.send("numbers", 2, key="b", timestamp=2000)
        driver.run()
        assert [value for _, value in driver.table("minutes").windows("all")] == [30]
    assert outside.asked == [1, 2, 1]


def test_no_record_at_once_is_refused() -> None:
    with pytest.raises(TopologyError, match="0 records"):
        faust.App("app").agent("t", concurrency=0)(_agent)


async def _agent(stream: Any) -> None:
    async for _ in stream:
        pass
