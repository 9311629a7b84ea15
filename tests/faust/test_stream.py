"""What may stand between an agent and its records."""

from __future__ import annotations

import asyncio
from typing import Any

import potok.faust as faust
from faust.shop import Order, order
from operators.core.in_process import InProcess


def outputs(driver: InProcess) -> list[Any]:
    return [record.value for record in driver.read("out")]


def run_over(numbers: Any, body: Any, *, batch: int | None = None) -> tuple[list[Any], list[tuple[str, str]]]:
    """What an agent with this body sends for these numbers, and the dead letters."""
    app = faust.App("app")
    topic, out = app.topic("numbers", key_type=str), app.topic("out")

    @app.agent(topic, sends=[out])
    async def work(stream: Any) -> None:
        await body(stream, out)

    with InProcess(app) as driver:
        for number in numbers:
            driver.send("numbers", number, key=f"k{number}", timestamp=number * 1000, headers={"h": b"x"})
        driver.run(batch)
        return outputs(driver), driver.reasons()


def test_filter_and_map_are_applied_before_the_loop() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for number in stream.filter(lambda n: n % 2).map(lambda n: n * 10):
            await out.send(value=number)

    assert run_over([1, 2, 3], body) == ([10, 30], [])


def test_events_have_keys_headers_and_times() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for event in stream.events():
            message = event.message
            await out.send(
                value=[event.key, event.value, event.headers["h"].decode(), message.timestamp, message.offset]
            )

    assert run_over([7], body)[0] == [["k7", 7, "x", 7.0, 0]]


def test_items_are_pairs_and_current_event_is_the_record_at_hand() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for key, value in stream.items():
            await out.send(value=[key, value, faust.current_event().message.topic])

    assert run_over([1], body)[0] == [["k1", 1, "numbers"]]


def test_take_returns_lists_and_the_rest_at_the_end_of_the_batch() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for numbers in stream.take(2, within=10):
            await out.send(value=numbers)

    assert run_over([1, 2, 3, 4, 5], body) == ([[1, 2], [3, 4], [5]], [])
    assert run_over([1, 2, 3], body, batch=1) == ([[1], [2], [3]], [])


def test_all_records_of_a_list_are_dead_letters_if_the_agent_raises() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for numbers in stream.take(2):
            await out.send(value=[12 / number for number in numbers])

    assert run_over([1, 0, 2, 3], body) == ([[6.0, 4.0]], [("work", "error"), ("work", "error")])


def test_an_agent_that_ends_starts_again_with_the_next_record() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for number in stream:
            await out.send(value=number)
            break

    assert run_over([1, 2], body) == ([1, 2], [])


def test_what_an_agent_yields_goes_to_its_sinks() -> None:
    app = faust.App("app")
    topic, out = app.topic("numbers"), app.topic("out")
    table = app.Table("heard", default=list)

    def hear(number: int) -> None:
        table["all"].append(number)

    @app.agent(topic, sink=[out, hear], tables=[table])
    async def double(stream: Any) -> Any:
        async for number in stream:
            yield number * 2

    with InProcess(app) as driver:
        driver.send("numbers", 3)
        driver.run()
        assert outputs(driver) == [6]
        assert driver.table("heard").get("all") == [6]


def test_an_agent_casts_to_another_whose_records_come_with_a_later_batch() -> None:
    app = faust.App("app")
    topic, out = app.topic("numbers"), app.topic("out")

    @app.agent()
    async def second(stream: Any) -> None:
        async for number in stream:
            await out.send(value=number + 1)

    @app.agent(topic)
    async def first(stream: Any) -> None:
        async for number in stream:
            await second.cast(number * 10)

    with InProcess(app) as driver:
        driver.send("numbers", 1)
        driver.run()
        driver.run()
        assert outputs(driver) == [11]


def test_through_writes_to_a_topic_and_continues_from_it() -> None:
    app = faust.App("app")
    topic, out = app.topic("orders", value_type=Order), app.topic("out")
    between = app.topic("orders-between", value_type=Order)

    @app.agent(topic)
    async def work(stream: Any) -> None:
        async for one in stream.through(between):
            await out.send(value=one.order_id)

    with InProcess(app) as driver:
        driver.send("orders", order(1, "u", 1.0))
        driver.run()
        driver.run()
        assert outputs(driver) == ["o1"]
        assert len(driver.read("orders-between")) == 1


def test_an_agent_may_wait_for_the_outside_world_and_not_for_ever() -> None:
    async def body(stream: Any, out: Any) -> None:
        async for number in stream:
            await asyncio.sleep(0)
            async with asyncio.timeout(5):
                await asyncio.sleep(0.001 if number != 2 else 60)
            await out.send(value=number)

    app = faust.App("app")
    topic, out = app.topic("numbers"), app.topic("out")

    @app.agent(topic, timeout=0.05, sends=[out])
    async def work(stream: Any) -> None:
        await body(stream, out)

    with InProcess(app) as driver:
        for number in (1, 2, 3):
            driver.send("numbers", number)
        driver.run()
        assert outputs(driver) == [1, 3]
        assert [letter.error.partition(":")[0].partition(",")[0] for letter in driver.dead_letters()] == [
            "TimeoutError"
        ]


def test_a_channel_takes_values_to_an_agent_before_the_next_record_and_falls_with_its_record() -> None:
    app = faust.App("app")
    topic, out, trail = app.topic("numbers"), app.topic("out"), app.Table("trail", default=list)
    large = app.channel()

    @app.agent(topic)
    async def split(stream: Any) -> None:
        async for number in stream:
            trail["all"].append(number)
            if number > 10:
                await large.put(number)
            if number == 13:
                raise ValueError(number)

    @app.agent(large)
    async def take(stream: Any) -> None:
        async for number in stream:
            trail["all"].append(-number)
            await out.send(value=100 / (number - 20))

    for batch in (None, 1):
        with InProcess(app) as driver:
            for number in (1, 12, 13, 20, 30):
                driver.send("numbers", number)
            driver.run(batch)
            assert driver.table("trail").get("all") == [1, 12, -12, 20, 30, -30]
            assert outputs(driver) == [-12.5, 10.0]
            assert driver.reasons() == [("split", "error"), ("take", "error")]


def test_who_asks_an_agent_gets_what_it_yields(tmp_path: Any) -> None:
    app = faust.App("app", broker=f"file:{tmp_path}")

    @app.agent()
    async def double(stream: Any) -> Any:
        async for number in stream:
            yield number * 2

    async def both(driver: InProcess) -> Any:
        asked = asyncio.ensure_future(double.ask(21, timeout=30))
        while not driver.broker.has_topic("app-double") or not sum(driver.broker.end_offsets("app-double").values()):
            await asyncio.sleep(0)
        driver.run()
        return await asked

    with InProcess(app, directory=tmp_path) as driver:
        assert asyncio.run(both(driver)) == 42
