"""Agents, from the program to what is read of it, in the process of the test."""

from __future__ import annotations

from typing import Any

import pytest

import potok.faust as faust
from faust.shop import HOUR, Order, order, shop
from operators.core.in_process import InProcess


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("key", [None, Order.user_id])
def test_the_program_of_a_shop_counts_sends_and_keeps_windows(spread: bool, batch: int | None, key: Any) -> None:
    with InProcess(shop(key=key), partitions={"orders": 2}, spread=spread) as driver:
        for number, (user, amount) in enumerate([("u1", 50.0), ("u2", 150), ("u1", 200.0), ("u1", 1.0)]):
            driver.send("orders", order(number, user, amount), timestamp=number * HOUR // 2, partition=0)
        driver.run(batch)
        assert driver.table("order_counts").all() == {"u1": 3, "u2": 1}
        assert driver.table("user_totals").get("u1") == 251.0
        windows = driver.table("hourly_stats").windows("u1")
        assert [(key.start_ms, value["total"], value["count"]) for key, value in windows] == [
            (0, 50.0, 1),
            (HOUR, 201.0, 2),
        ]
        assert sorted(record.value["order_id"] for record in driver.read("high-value-orders")) == ["o1", "o2"]
        assert driver.dead_letters() == []


def test_a_record_that_makes_an_agent_raise_is_a_dead_letter_and_leaves_no_trace() -> None:
    app = faust.App("app")
    topic, out = app.topic("numbers"), app.topic("out")
    seen, last = app.Table("seen", default=list), app.Table("last", default=int)

    @app.agent(topic)
    async def divide(numbers: Any) -> None:
        async for number in numbers:
            seen["all"].append(number)
            last["n"] = number
            await out.send(value=12 / number)

    with InProcess(app) as driver:
        for number in (3, 0, 4):
            driver.send("numbers", number)
        driver.run()
        assert driver.table("seen").get("all") == [3, 4]
        assert driver.table("last").get("n") == 4
        assert [record.value for record in driver.read("out")] == [4.0, 3.0]
        letters = driver.dead_letters()
        assert [(letter.step, letter.reason) for letter in letters] == [("divide", "error")]
        assert "ZeroDivisionError" in letters[0].error
        driver.send("numbers", 6)
        driver.run()
        assert driver.table("seen").get("all") == [3, 4, 6]


def test_a_value_that_is_not_data_is_a_dead_letter_also_if_it_was_put_in_place() -> None:
    app = faust.App("app")
    topic = app.topic("numbers")
    kept = app.Table("kept", default=list)

    @app.agent(topic)
    async def keep(numbers: Any) -> None:
        async for number in numbers:
            kept["all"].append(number if number else (lambda: 0))

    with InProcess(app) as driver:
        for number in (1, 0, 2):
            driver.send("numbers", number)
        driver.run()
        assert driver.table("kept").get("all") == [1, 2]
        assert driver.reasons() == [("keep", "error")]


def test_a_record_that_does_not_fit_its_class_is_a_dead_letter_of_its_topic() -> None:
    with InProcess(shop()) as driver:
        driver.send("orders", {"order_id": "o1"})
        driver.send("orders", b"{broken")
        driver.send("orders", 3)
        driver.send("orders", order(1, "u1", 10.0))
        driver.run()
        assert driver.table("order_counts").all() == {"u1": 1}
        assert driver.reasons() == [("orders", "decode")] * 3


def test_agents_that_share_a_table_take_turns_record_by_record_whatever_the_batches() -> None:
    def app() -> faust.App:
        made = faust.App("app")
        topic, trail = made.topic("numbers"), made.Table("trail", default=list)

        @made.agent(topic)
        async def first(numbers: Any) -> None:
            async for number in numbers:
                trail["all"].append(f"first {number}")

        @made.agent(topic)
        async def second(numbers: Any) -> None:
            async for number in numbers:
                trail["all"].append(f"second {number}")

        return made

    for batch in (None, 1):
        with InProcess(app()) as driver:
            driver.send("numbers", 1)
            driver.send("numbers", 2)
            driver.run(batch)
            assert driver.table("trail").get("all") == ["first 1", "second 1", "first 2", "second 2"]


def test_a_spread_agent_may_touch_no_row_but_that_of_its_record() -> None:
    app = faust.App("app")
    orders, counts = app.topic("orders", value_type=Order), app.Table("counts", default=int)

    @app.agent(orders, key=Order.user_id)
    async def count(stream: Any) -> None:
        async for one in stream:
            counts[one.order_id if one.amount < 0 else one.user_id] += 1

    with InProcess(app) as driver:
        driver.send("orders", order(1, "u1", -1.0))
        driver.send("orders", order(2, "u1", 1.0))
        driver.run()
        assert driver.table("counts").all() == {"u1": 1}
        letters = driver.dead_letters()
        assert [letter.step for letter in letters] == ["count"]
        assert "'o1'" in letters[0].error and "key=Order.user_id" in letters[0].error


def test_group_by_spreads_an_agent_and_sharing_a_table_with_one_that_is_not_keeps_it_together() -> None:
    def app(*, shared: bool) -> faust.App:
        made = faust.App("app")
        orders, counts = made.topic("orders", value_type=Order), made.Table("counts", default=int)

        @made.agent(orders)
        async def count(stream: Any) -> None:
            async for one in stream.group_by(Order.user_id):
                counts[one.user_id] += 1

        @made.agent(orders)
        async def total(stream: Any) -> None:
            async for _ in stream:
                if shared:
                    counts["all"] += 1

        return made

    def of_counts(*, shared: bool) -> Any:
        nodes = app(shared=shared).build()
        return nodes.node("counts")

    table = of_counts(shared=True)
    assert table.one_shard
    assert 'count is not spread: it shares table "counts" with total' in table.upstream.detail


def test_an_app_resumes_after_a_restart_with_its_state() -> None:
    with InProcess(shop()) as driver:
        driver.send("orders", order(1, "u1", 10.0))
        driver.run()
        driver.restart()
        driver.send("orders", order(2, "u1", 10.0))
        driver.run()
        assert driver.table("order_counts").all() == {"u1": 2}


def test_an_agent_and_a_stream_of_the_dsl_read_one_topic_in_one_query() -> None:
    class Paid(faust.Record):
        user: str
        amount: float

    app = faust.App("app")
    topic, counts = app.topic("paid", key_type=str, value_type=Paid), app.Table("counts", default=int)
    app.stream(topic).group_by(lambda k, v: v["user"]).sum("amount", name="sums")

    @app.agent(topic)
    async def count(stream: Any) -> None:
        async for paid in stream:
            counts[paid.user] += 1

    with InProcess(app) as driver:
        for amount in (1.5, 2.5):
            driver.send("paid", {"user": "u", "amount": amount}, key="k")
        driver.run()
        assert (driver.table("sums").all(), driver.table("counts").all()) == ({"u": 4.0}, {"u": 2})


def test_one_agent_takes_several_topics() -> None:
    app = faust.App("app")
    both, counts = app.topic("left", "right"), app.Table("counts", default=int)

    @app.agent(both)
    async def count(stream: Any) -> None:
        async for event in stream.events():
            counts[event.message.topic] += event.value

    with InProcess(app) as driver:
        driver.send("left", 1)
        driver.send("right", 2)
        driver.run()
        assert driver.table("counts").all() == {"left": 1, "right": 2}


def test_a_table_that_the_build_did_not_see_says_what_to_type() -> None:
    app = faust.App("app")
    topic, keyed = app.topic("numbers"), app.Table("keyed", default=int)
    app.Table("hidden", default=int)

    @app.agent(topic, key=lambda number: number)
    async def count(stream: Any) -> None:
        async for number in stream:
            keyed[number] += 1
            faust.Table(app, "hidden", default=int)[number] += 1

    with InProcess(app) as driver:
        driver.send("numbers", 1)
        driver.run()
        assert driver.table("keyed").all() == {}
        assert "tables=[hidden]" in driver.dead_letters()[0].error


def test_rows_can_be_iterated_deleted_and_looked_for_inside_an_agent() -> None:
    app = faust.App("app")
    topic, kept, out = app.topic("numbers"), app.Table("kept"), app.topic("out")

    @app.agent(topic)
    async def work(stream: Any) -> None:
        async for number in stream:
            if number < 0:
                kept.pop(str(-number), None)
            else:
                kept[str(number)] = number
            await out.send(value=[sorted(kept), sum(kept.values()), "1" in kept, kept.get("9", "no"), len(kept)])

    for batch in (None, 1):
        with InProcess(app) as driver:
            for number in (1, 2, -1, -5):
                driver.send("numbers", number)
            driver.run(batch)
            assert [record.value for record in driver.read("out")] == [
                [["1"], 1, True, "no", 1],
                [["1", "2"], 3, True, "no", 2],
                [["2"], 2, False, "no", 1],
                [["2"], 2, False, "no", 1],
            ]


@pytest.mark.parametrize("value_type", [None, Order])
def test_what_an_agent_does_to_a_value_no_other_agent_sees(value_type: Any) -> None:
    app = faust.App("app")
    topic, out, kept = app.topic("orders", value_type=value_type), app.topic("out"), app.Table("kept", default=list)

    def items_of(one: Any) -> Any:
        return one["items"] if isinstance(one, dict) else one.items

    @app.agent(topic)
    async def first(stream: Any) -> None:
        async for one in stream:
            items_of(one).append("more")
            kept["all"].append(print)

    @app.agent(topic)
    async def second(stream: Any) -> None:
        async for one in stream:
            await out.send(value=items_of(one))

    with InProcess(app) as driver:
        driver.send("orders", order(1, "u", 1.0))
        driver.run()
        assert [record.value for record in driver.read("out")] == [["book"]]
        assert driver.reasons() == [("first", "error")]


def test_what_an_agent_does_on_its_way_out_counts_no_more() -> None:
    app = faust.App("app")
    topic, out, counts = app.topic("numbers"), app.topic("out"), app.Table("counts", default=int)

    @app.agent(topic)
    async def work(stream: Any) -> None:
        try:
            async for number in stream:
                counts["seen"] += 12 // number
        finally:
            counts["closed"] += 1
            await out.send(value="closed")

    for batch in (None, 1):
        with InProcess(app) as driver:
            for number in (12, 0, 6):
                driver.send("numbers", number)
            driver.run(batch)
            assert driver.table("counts").all() == {"seen": 3}
            assert driver.read("out") == []
            assert driver.reasons() == [("work", "error")]
