"""One agent by itself, in a test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import potok.faust as faust


class Order(faust.Record):
    user: str
    amount: float


def shop() -> tuple[faust.App, Any, Any, Any, Any]:
    app = faust.App("app")
    orders, large = app.topic("orders", value_type=Order), app.topic("large")
    counts = app.Table("counts", default=int)
    minutes = app.Table("minutes", default=int).tumbling(60)

    @app.agent(orders)
    async def count(stream: Any) -> Any:
        async for order in stream:
            counts[order.user] += 1
            minutes[order.user] += 1
            if order.amount > 100:
                await large.send(key=order.user, value=order)
            if order.amount < 0:
                raise ValueError(order.amount)
            yield counts[order.user]

    @app.agent(large)
    async def refund(stream: Any) -> None:
        async for order in stream:
            counts[order["user"]] -= 1

    return app, count, refund, counts, minutes


def test_a_test_puts_records_and_looks_at_what_became_of_them() -> None:
    async def test() -> None:
        _, count, refund, counts, minutes = shop()
        async with count.test_context() as agent:
            counts["ann"] = 5
            event = await agent.put(Order("ann", 120.0), key="k", timestamp=61.0, headers={"h": b"x"})
            assert (event.message.offset, event.key, event.headers, event.value.amount) == (0, "k", {"h": b"x"}, 120.0)
            assert agent.results[event.message.offset] == counts["ann"] == 6
            assert minutes["ann"].current() == 1
            assert [(sent.topic, sent.key, sent.value) for sent in agent.sent] == [
                ("large", b"ann", {"user": "ann", "amount": 120.0})
            ]
            async with refund.test_context() as other:
                await other.put({"user": "ann"})
                assert counts["ann"] == 5
            event = await agent.put({"user": "bob", "amount": 1.0})
            assert (event.message.offset, agent.results[1], agent.processed_offset) == (1, 1, 2)

    asyncio.run(test())


def test_what_the_agent_raises_comes_out_of_put_and_leaves_no_trace() -> None:
    async def test() -> None:
        _, count, _, counts, _ = shop()
        async with count.test_context() as agent:
            with pytest.raises(ValueError, match=r"-1\.0"):
                await agent.put(Order("ann", -1.0))
            assert "ann" not in counts
            await agent.put(Order("ann", 1.0))
            assert counts["ann"] == 1

    asyncio.run(test())


def test_tables_of_a_test_are_gone_with_it() -> None:
    async def test() -> None:
        _, count, _, counts, _ = shop()
        for _ in range(2):
            async with count.test_context() as agent:
                await agent.put(Order("ann", 1.0))
                assert dict(counts.items()) == {"ann": 1}

    asyncio.run(test())
